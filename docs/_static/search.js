// The search: ranks what site_search.py wrote, while the reader types. Without a server, so that it works from a folder.
const kinds = { term: "Glossary", exercise: "Exercise", section: "Section", utils: "utils", page: "Page" };
const bonus = { term: 9, exercise: 7, section: 4, utils: 2, page: 0 };
const shownAtMost = 40;

const form = document.querySelector("#search");
const box = form.querySelector("input");
const list = document.querySelector("#search-results");
const said = document.querySelector("#search-status");

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
// A plural finds its singular; each word of the query stands at the beginning of a word.
const singular = (word) => word.replace(/(?<=[a-z]{2}[^s])s$/, "");
const pattern = (word) => new RegExp(`(?<![\\p{L}\\p{N}])${escaped(singular(word))}`, "giu");

function score(entry, query, patterns) {
  const title = entry.title.toLowerCase();
  const inTitle = patterns.filter((one) => title.search(one) >= 0).length;
  const counts = patterns.map((one) => (entry.text.match(one) ?? []).length + Number(title.search(one) >= 0));
  if (counts.includes(0)) return 0;
  let points = bonus[entry.kind] + Math.min(20, Math.min(...counts));
  if (title === query || title === singular(query)) points += 100;
  else if (title.startsWith(query)) points += 80;
  else if (inTitle === patterns.length) points += 50;
  else points += 10 * inTitle;
  if (entry.defines.includes(query) || entry.defines.includes(singular(query))) points += entry.page.startsWith("0.") ? 20 : 30;
  return points;
}

function excerpt(entry, patterns) {
  const first = Math.max(0, Math.min(...patterns.map((one) => entry.text.search(one)).filter((at) => at >= 0), Infinity));
  const from = Number.isFinite(first) && first > 60 ? entry.text.indexOf(" ", first - 60) + 1 : 0;
  const whole = entry.text.length <= from + 180;
  const text = whole ? entry.text.slice(from) : entry.text.slice(from, from + 180).replace(/\s\S*$/, "");
  const line = document.createElement("p");
  const all = new RegExp(patterns.map((one) => `${one.source}[\\p{L}\\p{N}]*`).join("|"), "giu");
  let at = 0;
  for (const found of text.matchAll(all)) {
    line.append(text.slice(at, found.index), Object.assign(document.createElement("mark"), { textContent: found[0] }));
    at = found.index + found[0].length;
  }
  line.append(text.slice(at), whole ? "" : " …");
  if (from) line.prepend("… ");
  return line;
}

function search() {
  const query = box.value.trim().toLowerCase().replace(/\s+/g, " ");
  const patterns = query.split(" ").filter(Boolean).map(pattern);
  const found = patterns.length
    ? searchEntries
        .map((entry) => ({ entry, points: score(entry, query, patterns) }))
        .filter(({ points }) => points > 0)
        .sort((one, other) => other.points - one.points)
    : [];
  list.replaceChildren(
    ...found.slice(0, shownAtMost).map(({ entry }) => {
      const item = document.createElement("li");
      const link = Object.assign(document.createElement("a"), { href: entry.url, textContent: entry.title });
      const where = Object.assign(document.createElement("span"), { className: "kind" });
      where.textContent = ["section", "exercise"].includes(entry.kind) ? `${kinds[entry.kind]} · ${entry.page}` : kinds[entry.kind];
      item.append(link, " ", where, excerpt(entry, patterns));
      return item;
    }),
  );
  said.textContent = patterns.length ? `${found.length} ${found.length === 1 ? "result" : "results"}` : "";
  history.replaceState(null, "", query ? `?q=${encodeURIComponent(box.value)}` : location.pathname);
}

form.hidden = false;
box.value = new URLSearchParams(location.search).get("q") ?? "";
box.addEventListener("input", search);
form.addEventListener("submit", (event) => event.preventDefault());
search();
box.focus();
