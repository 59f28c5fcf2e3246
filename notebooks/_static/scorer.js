/* Rank search results: a title that contains all words of the query comes first, the shorter the
 * better; guide pages come before notebooks and pages about the project. The other numbers are
 * Sphinx's defaults. */
var Scorer = {
  score: ([docname, title, anchor, description, score]) => {
    const query = (new URLSearchParams(window.location.search).get("q") || "").toLowerCase().trim();
    const text = title.toLowerCase();
    if (query && query.split(/\s+/).every((word) => text.includes(word)))
      score += Math.min(30, (30 * query.length) / text.length);
    if (docname.startsWith("project/") || /^\d/.test(docname)) score -= 10;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
