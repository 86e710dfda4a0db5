/** Positions of text on a page of charts in Chromium: in elements, and in canvases, whose text is not accessible by itself. */
import type { Page } from 'puppeteer-core';

interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

interface PlacedText extends Box {
  readonly text: string;
  /** Colour of a canvas's text. */
  readonly colour?: string;
}

/** Groups of texts: no two texts of a group overlap, and none exceeds the group's bounds. */
interface TextGroup {
  readonly place: string;
  readonly bounds: Box;
  readonly texts: readonly PlacedText[];
}

export interface Looks {
  /** Pixels by which the page is wider than its window. */
  readonly excess: number;
  /** Tables and texts wider than their place, and figures that continue in the next line, including folded parts. */
  readonly cut: readonly string[];
  /** Background colour of all text. */
  readonly ground: string;
  readonly groups: readonly TextGroup[];
}

/** Evaluated before a page: from then on `canvasTexts` holds the text written on each canvas since it was cleared. */
export const recordCanvasText = `
var canvasTexts = new WeakMap();
{
  const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.clearRect = function (...area) {
    canvasTexts.set(this.canvas, []);
    clearRect.apply(this, area);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const { actualBoundingBoxLeft: left, actualBoundingBoxRight: right, actualBoundingBoxAscent: up, actualBoundingBoxDescent: down } = this.measureText(text);
    const corners = [[x - left, y - up], [x + right, y - up], [x - left, y + down], [x + right, y + down]].map(([atX, atY]) => this.getTransform().transformPoint(new DOMPoint(atX, atY)));
    const xs = corners.map((corner) => corner.x / devicePixelRatio);
    const ys = corners.map((corner) => corner.y / devicePixelRatio);
    if (text !== '') canvasTexts.get(this.canvas)?.push({ text: String(text), colour: this.fillStyle, left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys) });
    fillText.call(this, text, x, y);
  };
}`;

const looksScript = `(() => {
  const plain = ({ left, top, right, bottom }) => ({ left, top, right, bottom });
  const textOf = (element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    return { text: element.textContent.trim().slice(0, 80), ...plain(range.getBoundingClientRect()) };
  };
  // Elements hidden only from sight are one pixel large.
  const textsOf = (elements) =>
    [...elements].filter((element) => element.checkVisibility() && element.offsetWidth > 1).map(textOf).filter(({ text }) => text !== '');
  const root = document.documentElement;
  const groups = [...document.querySelectorAll('.chart')].flatMap((chart) => {
    const canvas = chart.querySelector('canvas');
    const area = plain(canvas.getBoundingClientRect());
    const beside = textsOf(chart.querySelectorAll('.u-title, .upward, .across, .marks > :is(a, span), .u-legend th, .u-legend td'));
    return [
      { place: 'canvas of ' + chart.id, bounds: { left: 0, top: 0, right: canvas.clientWidth, bottom: canvas.clientHeight }, texts: canvasTexts.get(canvas) },
      { place: chart.id, bounds: plain(chart.getBoundingClientRect()), texts: [...beside, { text: 'the drawing', ...area }] },
    ];
  });
  for (const map of document.querySelectorAll('.map'))
    groups.push({ place: map.id, bounds: plain(map.getBoundingClientRect()), texts: textsOf(map.querySelectorAll('th, td > span, td > a > span, td.none')) });
  const folded = [...document.querySelectorAll('details:not([open])')];
  for (const details of folded) details.open = true;
  const cut = [...document.querySelectorAll('.scroll, pre')].filter((part) => part.scrollWidth > part.clientWidth + 1).map((part) => part.ariaLabel ?? part.textContent.slice(0, 60));
  const broken = [...document.querySelectorAll('.scroll > table:not(.heat) td:not(.said):not(.worded)')].filter((cell) => {
    if (cell.textContent === '' || /\\s/.test(cell.textContent)) return false;
    const range = document.createRange();
    let leaf = cell;
    while (leaf.firstElementChild !== null) leaf = leaf.firstElementChild;
    range.selectNodeContents(leaf);
    return range.getBoundingClientRect().height > 30;
  }).map((cell) => cell.textContent + ' is broken');
  cut.push(...broken);
  for (const details of folded) details.open = false;
  const window = { left: 0, top: 0, right: root.clientWidth, bottom: root.scrollHeight };
  groups.push({ place: 'page', bounds: window, texts: textsOf(document.querySelectorAll('h1, h2, body > p, li, summary')) });
  return { excess: root.scrollWidth - root.clientWidth, cut, ground: getComputedStyle(document.body).backgroundColor, groups };
})()`;

export const looksOf = async (page: Page): Promise<Looks> => (await page.evaluate(looksScript)) as Looks;

/** Half a pixel is rounding. */
const tolerance = 0.75;

/** Complaints of a reader. */
export function complaintsOf({ excess, cut, ground, groups }: Looks): string[] {
  return [
    ...(excess === 0 ? [] : [`the page is ${excess} pixels wider than its window`]),
    ...cut.map((what) => `${what}: wider than its place`),
    ...groups.flatMap(({ place, bounds, texts }) => [
      ...texts
        .filter((text) => !isWithin(text, bounds))
        .map(({ text }) => `${place}: "${text}" is not all seen`),
      ...texts.flatMap((one, at) =>
        texts
          .slice(at + 1)
          .filter((other) => areOverEachOther(one, other))
          .map((other) => `${place}: "${one.text}" and "${other.text}" lie on each other`),
      ),
      ...texts
        .filter(({ colour }) => colour !== undefined && contrast(colour, ground) < contrastLeast)
        .map(({ text, colour }) => `${place}: "${text}" is ${colour} on ${ground}`),
    ]),
  ];
}

const isWithin = (box: Box, bounds: Box): boolean =>
  box.left > bounds.left - tolerance &&
  box.right < bounds.right + tolerance &&
  box.top > bounds.top - tolerance &&
  box.bottom < bounds.bottom + tolerance;

const areOverEachOther = (one: Box, other: Box): boolean =>
  one.left < other.right - tolerance &&
  other.left < one.right - tolerance &&
  one.top < other.bottom - tolerance &&
  other.top < one.bottom - tolerance;

/** WCAG 2.2, 1.4.3: for text that is not large. */
const contrastLeast = 4.5;

function contrast(one: string, other: string): number {
  const [low, high] = [luminanceOf(one), luminanceOf(other)].toSorted((left, right) => left - right);
  return (high! + 0.05) / (low! + 0.05);
}

/** Relative luminance as WCAG 2.2 defines it, of `#rrggbb` or `rgb(r, g, b)`. */
function luminanceOf(colour: string): number {
  const parts = colour.startsWith('#')
    ? [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16))
    : [...colour.matchAll(/\d+/g)].map(Number);
  const [red, green, blue] = parts.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}
