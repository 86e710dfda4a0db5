/** Links of a folder of static pages without a target, and resources that its pages would fetch from the network. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

interface Page {
  readonly links: readonly string[];
  readonly anchors: ReadonlySet<string>;
  readonly foreign: readonly string[];
}

const isElsewhere = (address: string): boolean => /^(?:[a-z]+:|\/\/)/i.test(address);
/** The lab's own tests check the lab's links. */
const isChecked = (path: string): boolean => path.endsWith('.html') && !path.startsWith('lab-app/');

function parsed(html: string): Page {
  const tags = [...html.replace(/<script\b[\s\S]*?<\/script>/g, '').matchAll(/<(\w+)\s([^>]*)>/g)];
  const attributesOf = (text: string, name: RegExp): string[] =>
    [...text.matchAll(new RegExp(`\\b(?:${name.source})="([^"]*)"`, 'g'))].map(([, value]) =>
      decoded(value!),
    );
  const loaded = [...html.matchAll(/<(?:script|img|link|iframe|source)\b[^>]*>/g)].map(([tag]) => tag);
  return {
    links: tags.flatMap(([, , attributes]) => attributesOf(attributes!, /href|src/)),
    anchors: new Set(tags.flatMap(([, , attributes]) => attributesOf(attributes!, /id|name/))),
    foreign: loaded
      .flatMap((tag) => attributesOf(tag, /href|src/))
      .filter((url) => /^(?:https?:)?\/\//.test(url)),
  };
}

const decoded = (text: string): string =>
  text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&');

/** `page: link` of each, for all pages below a folder. */
export function deadLinksIn(folder: string): string[] {
  const files = new Set(readdirSync(folder, { recursive: true, encoding: 'utf8' }));
  const pages = new Map(
    [...files].filter(isChecked).map((path) => [path, parsed(readFileSync(join(folder, path), 'utf8'))]),
  );
  return [...pages].flatMap(([path, { links, foreign }]) => [
    ...foreign.map((url) => `${path}: loads ${url}`),
    ...links.filter((link) => !isElsewhere(link) && isDead(path, link)).map((link) => `${path}: ${link}`),
  ]);

  function isDead(page: string, link: string): boolean {
    const [target, anchor] = link.split('#') as [string, string?];
    const path = decodeURI(
      target === '' ? page : target.startsWith('/') ? target.slice(1) : join(dirname(page), target),
    );
    const file = files.has(join(path, 'index.html')) ? join(path, 'index.html') : path;
    if (!files.has(file)) return true;
    const anchors = pages.get(file)?.anchors;
    return (
      anchor !== undefined &&
      anchor !== '' &&
      anchors !== undefined &&
      !anchors.has(decodeURIComponent(anchor))
    );
  }
}
