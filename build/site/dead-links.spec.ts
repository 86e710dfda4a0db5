/** Dead links and foreign resources are found, in a folder of small pages. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { deadLinksIn } from './dead-links.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hca-links-'));
  mkdirSync(join(folder, 'docs'));
  mkdirSync(join(folder, 'lab-app'));
  writeFileSync(join(folder, 'docs', 'index.html'), '<h2 id="what&#39;s-new">New</h2>');
  writeFileSync(join(folder, 'logo.png'), '');
});
afterEach(() => rmSync(folder, { recursive: true }));

const deadIn = (html: string): string[] => {
  writeFileSync(join(folder, 'page.html'), html);
  return deadLinksIn(folder);
};

it('accepts pages, folders with an index, images, anchors and addresses of the network', () => {
  expect(
    deadIn(`<p id="a"><a href="#a">a</a> <a class="x" href="./docs/">b</a> <a href="/docs/index.html#what's-new">c</a>
      <img src="logo.png"> <a href="https://example.org/">d</a> <a href="mailto:a@example.org">e</a>`),
  ).toEqual([]);
});

it('rejects missing files, folders without an index and missing anchors', () => {
  expect(
    deadIn(
      '<a href="nowhere.html">a</a> <a href="lab-app/">b</a> <a href="docs/#old">c</a> <a href="#b">d</a>',
    ),
  ).toEqual(['page.html: nowhere.html', 'page.html: lab-app/', 'page.html: docs/#old', 'page.html: #b']);
});

it('rejects scripts, styles and images of another host, and allows links to one', () => {
  expect(
    deadIn(`<script src="https://cdn.example.org/a.js"></script> <link rel="stylesheet" href="//fonts.example.org/b.css">
      <img alt="" src="http://example.org/c.png"> <a href="https://example.org/">d</a>`),
  ).toEqual([
    'page.html: loads https://cdn.example.org/a.js',
    'page.html: loads //fonts.example.org/b.css',
    'page.html: loads http://example.org/c.png',
  ]);
});

it('ignores the contents of scripts and the pages of the lab, which has its own tests', () => {
  writeFileSync(join(folder, 'lab-app', 'index.html'), '<script src="absent.js"></script>');
  expect(deadIn('<script>const link = "<a href=nowhere.html>";</script>')).toEqual([]);
});
