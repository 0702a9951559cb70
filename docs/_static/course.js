// Whatever scrolls sideways can be reached and scrolled with the keyboard, also in an answer just unfolded.
const wide = ".paper, .katex-display, .pst-scrollable-table-container, .bd-article pre";

function reach() {
  for (const box of document.querySelectorAll(wide)) {
    if (box.scrollWidth > box.clientWidth) {
      box.tabIndex = 0;
    } else {
      box.removeAttribute("tabindex");
    }
  }
}

addEventListener("load", reach);
addEventListener("resize", reach);
document.addEventListener("toggle", reach, true); // a toggled <details> does not bubble
