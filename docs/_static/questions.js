// Exercises answered on the page: the verdict of every combination of choices was worked out when the site was built.
const grounds = { "✓": "#1a7f37", "✗": "#b45309", "…": "#5f6b7a" };

function show(place, line) {
  const box = document.createElement("div");
  box.className = "verdict";
  const mark = document.createElement("span");
  mark.className = "mark";
  mark.style.background = grounds[line[0]];
  mark.textContent = line[0];
  const words = document.createElement("span");
  line.slice(2).split("`").forEach((part, index) => {
    words.append(index % 2 ? Object.assign(document.createElement("code"), { textContent: part }) : part);
  });
  box.append(mark, words);
  place.replaceChildren(box);
}

for (const form of document.querySelectorAll(".question-form")) {
  const { number, verdicts, codes } = JSON.parse(form.querySelector("script").textContent);
  const items = [...form.querySelectorAll("fieldset")];
  const chosen = (item) => (item.querySelector("select") ?? item.querySelector("input:checked"))?.value ?? "";

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const open = items.filter((item) => chosen(item) === "").length;
    const index = items.reduce((sum, item) => sum * Number(item.dataset.choices) + Number(chosen(item)), 0);
    const left = `… ${number}: ${open} of ${items.length} ${open === 1 ? "is" : "are"} still open`;
    show(form.querySelector("[role=status]"), open ? left : verdicts[codes.charCodeAt(index) - 48]);
  });
  form.hidden = false;
}
