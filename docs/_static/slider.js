// Sliders without a kernel: each position has a picture, drawn when the site was built, and the words for it.
for (const figure of document.querySelectorAll("figure.slider")) {
  const { folder, controls, alts } = JSON.parse(figure.querySelector("script").textContent);
  const inputs = [...figure.querySelectorAll("input")];
  const picture = figure.querySelector("img");
  const address = (index) => `${folder}${index}.png`;
  const position = (input) => (input.type === "checkbox" ? Number(input.checked) : Number(input.value));

  function move() {
    const index = inputs.reduce((sum, input, i) => sum * controls[i].labels.length + position(input), 0);
    inputs.forEach((input, i) => {
      const label = controls[i].labels[position(input)];
      if (input.type === "range") {
        input.nextElementSibling.value = label;
        input.setAttribute("aria-valuetext", label);
      }
    });
    picture.src = address(index);
    picture.alt = alts[index];
    figure.querySelector(".said").textContent = alts[index];
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

  figure.querySelector(".controls").hidden = false;
  figure.addEventListener("input", move);
}
