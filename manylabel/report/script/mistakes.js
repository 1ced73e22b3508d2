// The pictures stand in the page already; this only shows one kind of mistake or all.
function mistakeKinds() {
  const buttons = [...place("mistake-kinds").children], pictures = [...document.querySelectorAll("#mistakes .mistakes > li")];
  for (const button of buttons) {
    const of = pictures.filter(picture => !button.dataset.kind || picture.dataset.kind === button.dataset.kind);
    button.append(` ${of.length}`);
    button.disabled = !of.length;
    button.addEventListener("click", () => {
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      for (const picture of pictures) picture.hidden = !of.includes(picture);
    });
  }
}
