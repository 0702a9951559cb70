// Whatever scrolls sideways says so, and can be reached and scrolled with the keyboard, also in an answer just unfolded.
const observer = new ResizeObserver((entries) => {
  for (const { target: box } of entries) {
    box.classList.remove("scrolls"); // its hint changes the size: measured with it, a box could flicker for ever
    const beyond = box.scrollWidth - box.clientWidth;
    box.classList.toggle("scrolls", beyond > 8); // less is the white edge of a figure
    if (beyond > 0) {
      box.tabIndex = 0;
    } else {
      box.removeAttribute("tabindex");
    }
  }
});

for (const box of document.querySelectorAll(".paper, div.math, .table-wrapper, article pre")) {
  observer.observe(box);
}
