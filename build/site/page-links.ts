/** Links of pages to targets that are not pages: sources, captures and folders. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { MarkdownRenderer } from 'vitepress';

/** Folder of the site that holds copies of linked files. */
export const filesFolder = 'files';

/** Path of the lab on the site. `/lab/` is the README of the sources. */
export const labAddress = '/lab-app/';

/** Linked files and folders of the repository other than pages, by path. The build copies them to the site. */
export const linkedFiles = new Set<string>();

/**
 * Address on the site for a link of a page.
 * @param page path of the page in the repository
 * @throws Error if the link's path does not exist
 */
export function siteAddress(root: string, page: string, link: string): string {
  if (/^(?:[a-z]+:|#|\/)/i.test(link)) return link;
  const [target, hash = ''] = link.split(/(?=#)/) as [string, string?];
  const path = join(dirname(page), target);
  if (!existsSync(join(root, path))) throw new Error(`${page}: link to ${link}: no such file`);
  if (path.endsWith('.md')) return target.replace(/README\.md$/, 'index.md') + hash;
  if (existsSync(join(root, path, 'README.md'))) return `${target.replace(/\/?$/, '/')}index.md${hash}`;
  linkedFiles.add(path);
  return `/${filesFolder}/${path}.txt`;
}

/** Makes a Markdown renderer link to the site's addresses. */
export function linkToSite(md: MarkdownRenderer, root: string): void {
  md.core.ruler.push('links-to-site', ({ tokens, env }) => {
    const page = (env as { readonly path: string }).path.slice(root.length);
    for (const { children } of tokens) {
      for (const token of children ?? []) {
        const href = token.type === 'link_open' ? token.attrGet('href') : null;
        if (href === null) continue;
        const address = siteAddress(root, page, href);
        token.attrSet('href', address);
        if (address.startsWith(`/${filesFolder}/`)) token.attrSet('target', '_self');
      }
    }
  });
}
