/**
 * Configuration of the documentation site: every Markdown page of the repository at its own path, so that relative links mean the same on
 * the site as in a checkout.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type DefaultTheme, defineConfig } from 'vitepress';
import { anchorOf } from './anchor.ts';
import { finishSite } from './finish-site.ts';
import { labAddress, linkToSite } from './page-links.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** Folders that do not belong to the repository, or are not for readers. */
const excluded = ['node_modules', 'dist', '.scratch'];
const pages = globSync('**/*.md', { cwd: root, exclude: (path) => excluded.includes(path) });

/** Title of a page: its first heading. */
function titleOf(page: string): string {
  const [, title] = /^# (.*)$/m.exec(readFileSync(join(root, page), 'utf8')) ?? [];
  return (title ?? page).replaceAll('`', '');
}

const linkOf = (page: string): string =>
  `/${page.replace(/(^|\/)README\.md$/, '$1').replace(/\.md$/, '.html')}`;

/** The sections of docs/README.md, each with the pages that it lists, in its order and by its names. */
function documentationGroups(): DefaultTheme.SidebarItem[] {
  const [, ...sections] = readFileSync(join(root, 'docs/README.md'), 'utf8').split(/^## /m);
  return sections.map((section) => {
    const [, text = ''] = /^([^:\n]*)/.exec(section)!;
    const items = [...section.matchAll(/^- \[([^\]]*)\]\(([^)]*)\)/gm)];
    return {
      text,
      collapsed: false,
      items: items.map(([, name, page]) => ({ text: name!, link: linkOf(`docs/${page}`) })),
    };
  });
}

/** The pages of a folder, the folder's own README first. */
function groupOf(text: string, folder: string): DefaultTheme.SidebarItem {
  const below = pages.filter((page) => page.startsWith(`${folder}/`));
  const readmeFirst = (a: string, b: string): number =>
    Number(b.endsWith('/README.md')) - Number(a.endsWith('/README.md')) || a.localeCompare(b);
  return {
    text,
    collapsed: true,
    items: below.toSorted(readmeFirst).map((page) => ({ text: titleOf(page), link: linkOf(page) })),
  };
}

/** READMEs of rooms, which explain the sources to contributors. */
function roomsGroup(): DefaultTheme.SidebarItem {
  const rooms = pages.filter((page) => /^(?!docs|reference|examples).+\/README\.md$/.test(page));
  return {
    text: 'Rooms of the source',
    collapsed: true,
    items: rooms.map((page) => ({ text: page.replace('/README.md', '/'), link: linkOf(page) })),
  };
}

export const siteConfig = defineConfig({
  title: 'HCA emulator',
  description: 'An RTL-style model of an RDMA host channel adapter with cycle accounting',
  srcDir: '../..',
  outDir: '../../dist/site',
  cacheDir: '../../dist/site-cache',
  srcExclude: excluded.map((folder) => `${folder}/**`),
  rewrites: (page) => page.replace(/(^|\/)README\.md$/, '$1index.md'),
  base: './',
  buildEnd: ({ outDir }) => finishSite(root, outDir),
  markdown: {
    anchor: { slugify: anchorOf },
    config: (md) => linkToSite(md, root),
  },
  themeConfig: {
    nav: [
      { text: 'Tutorial', link: '/docs/tutorial/first-write.html' },
      { text: 'Commands', link: '/docs/how-to/commands.html' },
      { text: 'Lab', link: `${labAddress}index.html`, target: '_self' },
    ],
    sidebar: [
      ...documentationGroups(),
      groupOf('Questions of an architect', 'docs/studies'),
      groupOf('Decisions', 'docs/decisions'),
      groupOf('Sources of figures and formats', 'reference'),
      groupOf('Measurements and attempts', 'bench/notes'),
      roomsGroup(),
    ],
    outline: [2, 3],
    search: { provider: 'local' },
  },
});
