/** Completes the output of VitePress: the lab, copies of linked files, headers for static hosts, and the check of all links. */
import { cpSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { headersFile } from '../lab-headers.ts';
import { deadLinksIn } from './dead-links.ts';
import { filesFolder, labAddress, linkedFiles } from './page-links.ts';

/**
 * @param root the repository
 * @param site the built site
 * @throws Error that names each link of the site without a target, and each resource that a page would fetch from elsewhere
 */
export function finishSite(root: string, site: string): void {
  for (const path of linkedFiles) copyAsText(join(root, path), join(site, filesFolder, `${path}.txt`));
  cpSync(join(root, 'dist/lab'), join(site, labAddress), { recursive: true });
  writeFileSync(join(site, '_headers'), headersFile(`${labAddress}*`));
  const dead = deadLinksIn(site);
  if (dead.length > 0) throw new Error(`Dead links of the site:\n${dead.join('\n')}`);
}

/** A folder becomes the list of its files: a browser shows both as text, whatever their ending. */
function copyAsText(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  if (statSync(from).isDirectory()) writeFileSync(to, `${readdirSync(from).toSorted().join('\n')}\n`);
  else cpSync(from, to);
}
