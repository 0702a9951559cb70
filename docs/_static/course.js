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

// The words that mark what may be left out become a badge, in headings and in the page's contents.
for (const box of document.querySelectorAll(".bd-article :is(h2, h3), .bd-toc a")) {
  if (box.textContent.includes(" · Going further")) {
    box.innerHTML = box.innerHTML.replace("· Going further", '<span class="further">Going further</span>');
  }
}

addEventListener("load", reach);
addEventListener("resize", reach);
document.addEventListener("toggle", reach, true); // a toggled <details> does not bubble
