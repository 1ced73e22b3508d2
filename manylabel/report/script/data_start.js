supportBars();
if (place("per-image-chart")) perImageChart();
if (place("size-chart")) sizeChart();
if (place("cooccurrence-chart")) cooccurrenceChart();
document.documentElement.dataset.drawn = "yes";
