// The search: ranks what site_search.py wrote, while one types. Without a server, so that it works from a folder.
const kinds = {
  term: "Glossary", exercise: "Exercise", case: "Clinic", section: "Section", page: "Page", utils: "utils",
};
const order = Object.keys(kinds).reverse();
const named = { page: 6, utils: 4.5, term: 4 }; // how well an entry fits one of its other names; its title: 5
const shownAtMost = 40;
const small = `a an and are by can do does for how i in is it mean of on or s the to
  what when where which why with work works`.split(/\s+/);

const form = document.querySelector("#search");
const box = form.querySelector("input");
const list = document.querySelector("#search-results");
const said = document.querySelector("#search-status");

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const singular = (word) =>
  word
    .replace(/ies$/, "y")
    .replace(/ices$/, "ix")
    .replace(/(?<=ch|sh|x)es$/, "")
    .replace(/(?<=\w\w[^sui])s$/, "")
    .replace(/iz(?=ation|e|ing)/, "is");
const stem = (word) => word.replace(/(?<=\w{4})(?:al|ed|es|ing|ings|s|e)$/, "");
const split = (text) =>
  text.toLowerCase().replace(/sqrt|square root/g, "√").match(/[\p{L}\p{N}]+(?:\.[\p{L}\p{N}]+)*|√/gu) ?? [];
const same = (words) => words.map(singular).join(" ");

// Where a word begins in a text: whole, singular or plural, with -ise or -ize; while it is typed, its first letters.
function pattern(word, isWhole) {
  if (word === "√") return /√|sqrt|square root/giu;
  const letters = escaped(singular(word))
    .replace(/y$/, "(?:y|ies)")
    .replace(/ix$/, "i(?:x|ces)")
    .replace(/is(?=ation|e|ing)/, "i[sz]");
  const before = /^\d/.test(word) ? "(?<![\\p{L}\\p{N}]|\\d\\.)" : "(?<![\\p{L}\\p{N}])";
  const after = isWhole ? "(?:e?s)?(?![\\p{L}\\p{N}])" : /\d$/.test(word) ? "(?!\\d)" : "";
  return new RegExp(before + letters + after, "giu");
}

for (const entry of searchEntries) {
  entry.plain = same(split(entry.title));
  entry.bare = entry.plain.replace(/^(?:exercise |case )?\d[\w.]* /, ""); // without its number
  if (entry.kind === "term") entry.names.push(entry.plain.replaceAll(" ", "")); // layernorm
  entry.others = entry.names.map((name) => same(split(name)));
}
const known = [...new Set(searchEntries.flatMap(({ title, names }) => split([title, ...names].join(" "))))];

// How well an entry fits: 0 for not at all. What counts most is the title, then the kind, then how often words occur.
function fit(entry, queries, words, enough) {
  const inTitle = words.filter((word) => entry.title.search(word) >= 0).length;
  const counts = words.map((word) => {
    const inNames = entry.names.some((name) => name.search(word) >= 0) || entry.title.search(word) >= 0;
    return (entry.text.match(word) ?? []).length + (inNames ? 3 : entry.code.search(word) >= 0 ? 0.5 : 0);
  });
  const found = counts.filter(Boolean);
  if (found.length < enough) return 0;
  let level = inTitle / words.length;
  const begins = (text) => queries.some((query) => text.startsWith(query));
  if (queries.includes(entry.plain) || queries.includes(entry.bare)) level = 5;
  else if (entry.others.some((name) => queries.includes(name))) level = named[entry.kind] ?? 3;
  else if (begins(entry.plain) || begins(entry.bare)) level = 2;
  // What may be left out comes after the core, and what is for teachers last.
  const kind = 2 * order.indexOf(entry.kind) - (entry.further ? 3 : 0) - (entry.page === "For teachers" ? 60 : 0);
  return 1 + 100 * level + 50 * found.length + kind + Math.min(20, ...found);
}

function ranked(queries, words, enough) {
  return searchEntries
    .map((entry) => ({ entry, points: fit(entry, queries, words, enough) }))
    .filter(({ points }) => points > 0)
    .sort((one, other) => other.points - one.points)
    .map(({ entry }) => entry);
}

// First all words as they are, then all with other endings, then some of them.
function search(text) {
  const all = split(text);
  const telling = all.filter((word) => !small.includes(word));
  const typed = telling.length ? telling : all;
  if (!typed.length) return { words: [], found: [], note: "" };
  const queries = [same(all), same(typed)];
  const exact = typed.map((word, index) => pattern(word, index < typed.length - 1));
  const loose = typed.map((word) => pattern(stem(word), false));
  const long = loose.filter((_, index) => typed[index].length > 3 || typed[index] === "√");
  const tries = [
    { words: exact, enough: exact.length, note: "" },
    { words: loose, enough: loose.length, note: "" },
    { words: long, enough: 1, note: "with some of these words" },
  ];
  for (const one of tries) {
    const found = ranked(queries, one.words, one.enough);
    if (found.length) return { ...one, found };
  }
  const meant = typed.map(nearest).join(" ");
  if (meant !== typed.join(" ")) return { ...search(meant), note: `for “${meant}”` };
  return { words: exact, found: [], note: "· try one word, or see the glossary" };
}

// The word of a title that was probably meant: one with few other letters, or one that begins in the same way.
function nearest(word) {
  const near = known
    .map((other) => ({ other, apart: distance(word, other) }))
    .filter(({ other, apart }) => apart <= word.length / 4 || (/^\p{L}{6,}$/u.test(word) && other.startsWith(word.slice(0, 5))));
  return near.sort((one, two) => one.apart - two.apart)[0]?.other ?? word;
}

// How many letters must be added, left out or changed.
function distance(one, other) {
  const row = [0, ...other].map((_, index) => index);
  [...one].forEach((letter, index) => {
    let before = row[0]++;
    [...other].forEach((another, at) => {
      const apart = Math.min(row[at + 1] + 1, row[at] + 1, before + (letter !== another));
      [before, row[at + 1]] = [row[at + 1], apart];
    });
  });
  return row.at(-1);
}

// The text around the first word that was found, with all of them marked.
function excerpt(entry, words) {
  const first = Math.min(...words.map((word) => entry.text.search(word)).filter((at) => at >= 0));
  const from = first > 60 && first < Infinity ? entry.text.indexOf(" ", first - 60) + 1 : 0;
  const isCut = entry.text.length > from + 180;
  const text = isCut ? entry.text.slice(from, from + 180).replace(/\s\S*$/, "") : entry.text.slice(from);
  const line = document.createElement("p");
  const all = new RegExp(words.map((word) => `${word.source}[\\p{L}\\p{N}]*`).join("|"), "giu");
  let at = 0;
  for (const found of text.matchAll(all)) {
    line.append(text.slice(at, found.index), Object.assign(document.createElement("mark"), { textContent: found[0] }));
    at = found.index + found[0].length;
  }
  line.append(text.slice(at), isCut ? " …" : "");
  if (from) line.prepend("… ");
  return line;
}

function item(entry, words) {
  const item = document.createElement("li");
  const link = Object.assign(document.createElement("a"), { href: entry.url, textContent: entry.title });
  const where = Object.assign(document.createElement("span"), { className: "kind" });
  const page = ["term", "page", "utils"].includes(entry.kind) ? [] : [entry.page];
  where.textContent = [kinds[entry.kind], ...page, ...(entry.further ? ["Going further"] : [])].join(" · ");
  item.append(link, " ", where, excerpt(entry, words));
  return item;
}

function show() {
  const { words, found, note } = search(box.value);
  list.replaceChildren(...found.slice(0, shownAtMost).map((entry) => item(entry, words)));
  const shown = found.length > shownAtMost ? `; the first ${shownAtMost} are shown` : "";
  const results = `${found.length} ${found.length === 1 ? "result" : "results"}`;
  said.textContent = words.length ? [results, note].join(" ").trim() + shown : "";
}

// Not at each letter: browsers allow few changes of the address, and load the page's icon again after each.
function keepAddress() {
  history.replaceState(null, "", box.value.trim() ? `?q=${encodeURIComponent(box.value)}` : location.pathname);
}

document.querySelector("#search-off").hidden = true;
form.hidden = false;
box.value = new URLSearchParams(location.search).get("q") ?? "";
box.addEventListener("input", show);
box.addEventListener("change", keepAddress);
form.addEventListener("submit", (event) => event.preventDefault());
show();
box.focus();
