// Whatever scrolls sideways says so, and can be reached and scrolled with the keyboard, also in an answer just unfolded.
const observer = new ResizeObserver((entries) => {
  for (const { target: box } of entries) {
    const scrolls = box.scrollWidth > box.clientWidth + 1;
    box.classList.toggle("scrolls", scrolls);
    if (scrolls) {
      box.tabIndex = 0;
    } else {
      box.removeAttribute("tabindex");
    }
  }
});

for (const box of document.querySelectorAll(".paper, div.math, .table-wrapper, article pre")) {
  observer.observe(box);
}
