// Sliders without a kernel: each position has a picture, drawn when the site was built, and the words for it.
for (const figure of document.querySelectorAll("figure.slider")) {
  const { folder, controls, alts } = JSON.parse(figure.querySelector("script").textContent);
  const inputs = [...figure.querySelectorAll("input")];
  const picture = figure.querySelector("img");
  const said = figure.querySelector(".said");
  const frames = alts.map(() => new Image());
  const position = (input) => (input.type === "checkbox" ? Number(input.checked) : Number(input.value));
  const frame = (positions) => positions.reduce((sum, at, i) => sum * controls[i].labels.length + at, 0);
  let chosen = frame(controls.map(({ start }) => start));

  function load(index) {
    const image = frames[index];
    if (image.complete && !image.naturalWidth) image.src = `${folder}${index}.png`; // not asked for yet, or in vain
    return image;
  }

  function show(index) {
    picture.src = frames[index].src;
    said.textContent = picture.alt = alts[index];
  }

  function move() {
    inputs.forEach((input, i) => {
      const label = controls[i].labels[position(input)];
      if (input.type === "range") {
        input.nextElementSibling.value = label;
        input.setAttribute("aria-valuetext", label);
      }
    });
    const index = (chosen = frame(inputs.map(position)));
    const image = load(index);
    if (image.naturalWidth) return show(index);
    image.onload = () => chosen === index && show(index);
    image.onerror = () => chosen === index && (said.textContent = "Without a network, this picture cannot be loaded.");
  }

  // Once the page itself is there, all frames are fetched: then no move waits, and the network may go away.
  const fetchAll = () => frames.forEach((_, index) => load(index));
  if (document.readyState === "complete") fetchAll();
  else addEventListener("load", fetchAll);

  for (const part of figure.querySelectorAll("[hidden]")) part.hidden = false;
  figure.addEventListener("input", move);
  // A reader who comes back finds the controls where they were left: the picture must follow.
  addEventListener("pageshow", () => frame(inputs.map(position)) !== chosen && move());
}
