// Exercises answered on the page: the verdict of every combination of choices was worked out when the site was built.
const grounds = { "✓": "#1a7f37", "✗": "#b45309", "…": "#5f6b7a" };

const element = (name, rest) => Object.assign(document.createElement(name), rest);

function show(place, line, sections) {
  const box = element("div", { className: "verdict" });
  const mark = element("span", { className: "mark", textContent: line[0] });
  mark.style.background = grounds[line[0]];
  const words = element("span");
  const [, message, see] = line.slice(2).match(/^(.*?)( \(see [^)]*\))?$/);
  message.split("`").forEach((part, index) => {
    words.append(index % 2 ? element("code", { textContent: part }) : part);
  });
  for (const part of (see ?? "").split(/(\d+\.\d+)/)) {
    words.append(part in sections ? element("a", { href: sections[part], textContent: part }) : part);
  }
  box.append(mark, words);
  place.replaceChildren(box);
}

for (const form of document.querySelectorAll(".question-form")) {
  const { number, verdicts, codes, sections } = JSON.parse(form.querySelector("script").textContent);
  const items = [...form.querySelectorAll("fieldset")];
  const chosen = (item) => (item.querySelector("select") ?? item.querySelector("input:checked"))?.value ?? "";

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const open = items.filter((item) => chosen(item) === "").length;
    const index = items.reduce((sum, item) => sum * Number(item.dataset.choices) + Number(chosen(item)), 0);
    const left = `… ${number}: ${open} of ${items.length} ${open === 1 ? "is" : "are"} not answered yet`;
    show(form.querySelector("[role=status]"), open ? left : verdicts[codes.charCodeAt(index) - 48], sections);
  });
  // A verdict on another answer would be a false one.
  form.addEventListener("change", () => form.querySelector("[role=status]").replaceChildren());
  form.hidden = false;
}
