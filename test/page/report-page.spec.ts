/** Pages that commands write, in headless Chromium: nothing is cut off, at any window width, and text is readable in light and dark. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import axe from 'axe-core';
import { expect } from 'vitest';
import { guestPage } from '../../cli/guest/guest-page.ts';
import { guestReportOf } from '../../guests/linux/index.ts';
import { serve } from '../../guests/serve/index.ts';
import { packageFolder } from '../../runtime/package-folder.ts';
import { inBrowser, inBrowserOfAll } from './browser.ts';
import { drivenBrowser, showPage } from './chromium.ts';

const limitMs = 60_000;
const widths = [400, 560, 800, 1000, 1400, 2500];

/** Shows each page in frames of several widths, and returns the widths of their content. */
const measuring = (
  names: readonly string[],
): string => `<!doctype html><title>widths</title><body><script type="module">
const measured = [];
for (const name of ${JSON.stringify(names)}) for (const width of ${JSON.stringify(widths)}) {
  const frame = document.createElement('iframe');
  Object.assign(frame, { width, height: 900, src: '/' + name });
  frame.style.border = '0';
  document.body.append(frame);
  await new Promise((resolve) => { frame.onload = resolve; });
  const { documentElement: root, body } = frame.contentDocument;
  // Folded parts are measured, too.
  for (const details of frame.contentDocument.querySelectorAll('details')) details.open = true;
  const cut = [...frame.contentDocument.querySelectorAll('.scroll, pre')].filter((part) => part.scrollWidth > part.clientWidth + 1).map((part) => part.ariaLabel ?? part.textContent.slice(0, 60));
  const broken = [...frame.contentDocument.querySelectorAll('td:not(.said):not(.worded)')].filter((cell) => {
    if (cell.textContent === '' || /\\s/.test(cell.textContent)) return false;
    const range = frame.contentDocument.createRange();
    let leaf = cell;
    while (leaf.firstElementChild !== null) leaf = leaf.firstElementChild;
    range.selectNodeContents(leaf);
    return range.getBoundingClientRect().height > 30;
  }).map((cell) => cell.textContent + ' is broken');
  cut.push(...broken);
  const bars = [...frame.contentDocument.querySelectorAll('.life .bar')].map((bar) => bar.getBoundingClientRect().width);
  measured.push({ name, width, cut, excess: root.scrollWidth - root.clientWidth, bars: Math.min(...bars), height: body.scrollHeight > 500 });
}
fetch('/outcome', { method: 'POST', body: JSON.stringify(measured) });
</script>`;

/** Measures of a page in a frame: its cut-off parts, the excess width of its content, its thinnest bar, and whether it is long. */
interface Measured {
  readonly name: string;
  readonly width: number;
  /** Tables and texts wider than their place, and figures that continue in the next line. */
  readonly cut: readonly string[];
  readonly excess: number;
  readonly bars: number;
  readonly height: boolean;
}

/** Commands, and their output after the page's path; each has another kind of section. */
const commands: readonly (readonly [name: string, ...words: string[]])[] = [
  ['move', join(packageFolder, 'LICENSE')],
  ['perf', 'write-bw', '--all', '--iters', '1'],
  ['explain', 'write-lat', '--iters', '5'],
  ['devinfo'],
  ['profiles'],
  ['compare', '--sizes', '64,256,1K', '--paths', 'sockets,write', '--count', '2'],
  ['why', 'read-lat', '--iters', '10', '--fault', 'packet=lost,node=0,nth=3-100'],
  ['validate', '--rows', 'A-011,D-069..D-076'],
];

/** Each of them, and that of a guest, by name: generated once. */
let made: Promise<ReadonlyMap<string, string>> | undefined;
function pages(): Promise<ReadonlyMap<string, string>> {
  made ??= guestPageOf().then(
    (guest) => new Map([...commands.map((words) => [words[0], pageOf(words)] as const), ['guest', guest]]),
  );
  return made;
}

function pageOf(words: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'hca-page-'));
  try {
    const file = join(folder, 'page.html');
    const args = [join(packageFolder, 'bin/hca.js'), ...words, '--html', file];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect(status, stderr).toBe(0);
    expect(stdout).toContain(`The same as a page: ${file}`);
    return readFileSync(file, 'utf8');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The page of a guest with a long command, a long line and all its tables; its devices are served briefly. */
async function guestPageOf(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'hca-page-'));
  try {
    const report = await (await serve({ socket: join(folder, 'guest.sock') })).close();
    const command = `pair '${'ib_write_bw --all '.repeat(20)}' 'ib_write_bw'`;
    const output = `${'1234567890'.repeat(40)}\n`.repeat(20);
    const ran = { guest: 0, command, output, exitStatus: 0, hasTimedOut: false, elapsedMs: 1 };
    const vector = { adapter: 0, vector: 1, name: 'mlx4-1@0000:01:00.0', isEqual: true, isServed: true };
    const interrupts = [{ ...vector, deviceCount: 5000, guestCount: 5000 }];
    const budget = [{ run: command, hca: 0, figure: 'toHost.wqeRead', budget: 10, counted: 9, holds: true }];
    const versions = { kernel: '6.1.0-44-amd64', qemu: '10.1', rdmaCore: '44', perftest: '4.5' };
    return guestPage(
      { title: 'A stock Linux guest', command: 'hca guest', version: '0' },
      { ...guestReportOf({ versions, interrupts, report }, [ran]), budget },
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

inBrowser(
  'the page of a command is nowhere wider than its window, nothing of it is cut, and the bars of hca move are seen',
  async (tree) => {
    const shown = await pages();
    const names = [...shown.keys()];
    const html = (text: string): readonly [string, string] => ['text/html', text];
    const files = {
      '/': html(measuring(names)),
      ...Object.fromEntries([...shown].map(([name, text]) => [`/${name}`, html(text)])),
    };
    const measured = JSON.parse(await showPage(tree, files, limitMs)) as Measured[];
    expect(measured.map(({ name, width }) => [name, width])).toEqual(
      names.flatMap((name) => widths.map((width) => [name, width])),
    );
    for (const { name, width, cut, excess, bars, height } of measured) {
      expect(cut, `${name} at ${width}`).toEqual([]);
      expect(excess, `${name} at ${width}`).toBe(0);
      expect(height, name).toBe(true);
      if (name === 'move') expect(bars).toBeGreaterThan(100);
    }
  },
);

inBrowserOfAll(
  'the text of every page of a command has contrast for everybody, light and dark',
  async (tree) => {
    await using driven = await drivenBrowser(tree);
    const page = await driven.browser.newPage();
    await page.setViewport({ width: 400, height: 900 });
    for (const [name, text] of await pages()) {
      await page.setContent(text);
      await page.evaluate(axe.source);
      const grounds = new Set<string>();
      for (const value of ['light', 'dark']) {
        await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }]);
        const faint = await page.evaluate(
          `axe.run(document, { runOnly: ['color-contrast'], resultTypes: ['violations'] }).then(({ violations }) =>
          violations.flatMap(({ nodes }) => nodes.slice(0, 3).map(({ html, any }) => html.slice(0, 200) + ' ' + (any[0]?.message ?? ''))))`,
        );
        expect(faint, `${name}, ${value}`).toEqual([]);
        grounds.add(String(await page.evaluate('getComputedStyle(document.body).backgroundColor')));
      }
      expect(grounds.size, `${name} has two grounds`).toBe(2);
    }
  },
);
