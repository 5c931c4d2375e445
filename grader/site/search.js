// Finds pages that hold all words of a question. PAGES is made by `course site`: [address, title, text] of each page.
"use strict";
const label = document.querySelector(".search"), input = label.querySelector("input");
const list = document.querySelector(".results");
label.hidden = false;

function excerpt(text, word) {
  const place = text.toLowerCase().indexOf(word);
  return text.slice(Math.max(0, place - 40), place + 80);
}

function found(words) {
  const hits = [];
  for (const [address, title, text] of PAGES) {
    const all = `${title} ${text}`.toLowerCase();
    if (!words.every((word) => all.includes(word))) continue;
    const inTitle = words.filter((word) => title.toLowerCase().includes(word)).length;
    hits.push({ address, title, text: excerpt(text, words[0]), rank: 100 * inTitle + all.split(words[0]).length });
  }
  return hits.sort((a, b) => b.rank - a.rank).slice(0, 12);
}

input.addEventListener("input", () => {
  const words = input.value.toLowerCase().split(/\s+/).filter((word) => word);
  list.replaceChildren(...(words.length ? found(words) : []).map((hit) => {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = hit.address;
    link.textContent = hit.title;
    item.append(link, ` … ${hit.text} …`);
    return item;
  }));
  if (words.length && !list.children.length) list.textContent = "No page has all of these words.";
  list.hidden = !words.length;
});
