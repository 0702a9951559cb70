// On paper everything is unfolded, also in browsers that do not do it by CSS alone (print.css).
let unfolded = [];

addEventListener("beforeprint", () => {
  unfolded = [...document.querySelectorAll("details:not([open])")];
  for (const details of unfolded) {
    details.open = true;
  }
});

addEventListener("afterprint", () => {
  for (const details of unfolded) {
    details.open = false;
  }
});
