// What a person could not read in the element `arguments[0]`, as a list of sentences.
//
// Contrast is that of WCAG 2. Colors are taken as the page computes them, with opacity and what lies
// behind blended in.

const root = arguments[0];
const complaints = [];

function parsed(color) {
  const canvas = parsed.canvas || (parsed.canvas = new OffscreenCanvas(1, 1).getContext("2d",
    { willReadFrequently: true }));
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = "rgba(0, 0, 0, 0)";
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
  return [red, green, blue, alpha / 255];
}

function over(front, back, opacity) {
  const alpha = front[3] * opacity;
  return [0, 1, 2].map((n) => front[n] * alpha + back[n] * (1 - alpha)).concat([1]);
}

function background(element) {
  const color = element ? background(element.parentElement) : [255, 255, 255, 1];
  return element ? over(parsed(getComputedStyle(element).backgroundColor), color, 1) : color;
}

function opacity(element) {
  return element ? getComputedStyle(element).opacity * opacity(element.parentElement) : 1;
}

function luminance(color) {
  const [red, green, blue] = color.slice(0, 3).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function compare(element, color, back, what) {
  const ratio = contrast(over(parsed(color), back, opacity(element)), back);
  if (ratio < 4.5) {
    complaints.push(`${what}: contrast ${ratio.toFixed(2)}, at least 4.5 is needed ` +
      `(${color} on ${back.slice(0, 3).map(Math.round)})`);
  }
}

const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
let shown = 0;
for (let node = texts.nextNode(); node; node = texts.nextNode()) {
  const element = node.parentElement;
  const text = node.textContent.trim();
  if (!text || !element.checkVisibility() || element.closest("title, style")) continue;
  shown += 1;
  const what = `text "${text.slice(0, 40)}"`;
  const style = getComputedStyle(element);
  compare(element, style.color, background(element), what);
  if (parseFloat(style.fontSize) < 11) complaints.push(`${what}: only ${style.fontSize} high`);
}
if (!shown && !root.querySelector("img")) complaints.push("nothing is shown");

for (const picture of root.querySelectorAll("img")) {
  const { width, height } = picture.getBoundingClientRect();
  if (width < 8 || height < 8) complaints.push(`a picture of ${width} x ${height}`);
  if (!picture.complete || picture.naturalWidth === 0) complaints.push("a broken picture");
}
for (const what of root.querySelectorAll("script, svg")) {
  complaints.push(`<${what.localName}>, which does not show everywhere`);
}

const page = root.closest(".jp-OutputArea-output").getBoundingClientRect();
for (const part of root.querySelectorAll("*")) {
  let scrolling = part.parentElement; // what a box with a scroll bar holds may be wider
  while (scrolling !== root && getComputedStyle(scrolling).overflowX === "visible") {
    scrolling = scrolling.parentElement;
  }
  const limit = scrolling === root ? page : scrolling.getBoundingClientRect();
  const mayScroll = scrolling !== root && part.closest("img, pre");
  const box = part.getBoundingClientRect();
  if (part.checkVisibility() && !mayScroll && box.width && box.right > limit.right + 1) {
    complaints.push(`<${part.localName}> is ${Math.round(box.right - limit.right)} pixels too wide`);
    break;
  }
}
return complaints;
