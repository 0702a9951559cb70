// Sliders without a kernel: each position has a picture, drawn when the site was built, and the words for it.
for (const figure of document.querySelectorAll("figure.slider")) {
  const { folder, controls, alts } = JSON.parse(figure.querySelector("script").textContent);
  const inputs = [...figure.querySelectorAll("input")];
  const picture = figure.querySelector("img");
  const address = (index) => `${folder}${index}.png`;
  const position = (input) => (input.type === "checkbox" ? Number(input.checked) : Number(input.value));
  const frame = (positions) => positions.reduce((sum, at, i) => sum * controls[i].labels.length + at, 0);
  let shown = frame(controls.map(({ start }) => start));

  function move() {
    inputs.forEach((input, i) => {
      const label = controls[i].labels[position(input)];
      if (input.type === "range") {
        input.nextElementSibling.value = label;
        input.setAttribute("aria-valuetext", label);
      }
    });
    shown = frame(inputs.map(position));
    picture.src = address(shown);
    picture.alt = alts[shown];
    figure.querySelector(".said").textContent = alts[shown];
  }

  // All frames are fetched before they are needed: then no move waits, and the network may go away.
  const kept = [];
  new IntersectionObserver(
    ([entry], observer) => {
      if (entry.isIntersecting) {
        observer.disconnect();
        alts.forEach((_, index) => (kept[index] = Object.assign(new Image(), { src: address(index) })));
      }
    },
    { rootMargin: "1000px" },
  ).observe(figure);

  for (const part of figure.querySelectorAll("[hidden]")) part.hidden = false;
  figure.addEventListener("input", move);
  // A reader who comes back finds the controls where they were left: the picture must follow.
  addEventListener("pageshow", () => frame(inputs.map(position)) !== shown && move());
}
