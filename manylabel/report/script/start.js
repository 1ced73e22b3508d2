const choose = labelTable();
if (scored.length) histogram();
if (place("curves-chart")) allCurves(choose);
if (place("spread-chart")) spreadChart(choose);
if (place("calibration-chart")) calibrationChart();
if (place("history-chart")) historyChart();
if (place("cooccurrence-chart")) cooccurrenceChart();
if (place("mistake-kinds")) mistakeKinds();
document.documentElement.dataset.drawn = "yes";
