// Whatever scrolls sideways says so, and can be reached and scrolled with the keyboard, also in an answer just unfolded.
const wide = ".paper, div.math, .table-wrapper, article pre";

function reach() {
  for (const box of document.querySelectorAll(wide)) {
    const scrolls = box.scrollWidth > box.clientWidth + 1;
    box.classList.toggle("scrolls", scrolls);
    if (scrolls) {
      box.tabIndex = 0;
    } else {
      box.removeAttribute("tabindex");
    }
  }
}

addEventListener("load", reach);
addEventListener("resize", reach);
document.addEventListener("toggle", reach, true); // a toggled <details> does not bubble
