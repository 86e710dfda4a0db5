/** Addresses of the site for links of this repository's pages. */
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { anchorOf } from './anchor.ts';
import { linkedFiles, siteAddress } from './page-links.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const addressIn = (page: string, link: string): string => siteAddress(root, page, link);

it('leads to pages by their relative paths, to a README by its folder', () => {
  expect(addressIn('README.md', 'docs/reference/verbs.md#supported')).toBe(
    'docs/reference/verbs.md#supported',
  );
  expect(addressIn('docs/reference/verbs.md', '../../README.md')).toBe('../../index.md');
  expect(addressIn('README.md', 'docs/studies')).toBe('docs/studies/index.md');
  expect(addressIn('README.md', 'docs/studies/')).toBe('docs/studies/index.md');
});

it('leads to copies of files and to lists of folders without a README, and notes them', () => {
  expect(addressIn('docs/how-to/why.md', '../../package.json')).toBe('/files/package.json.txt');
  expect(addressIn('build/README.md', 'site')).toBe('/files/build/site.txt');
  expect(linkedFiles).toContain('package.json');
  expect(linkedFiles).toContain('build/site');
});

it('leaves addresses of the network, of the site and of the page itself as they are', () => {
  for (const link of ['https://vitest.dev', '#supported', '/lab-app/index.html'])
    expect(addressIn('README.md', link)).toBe(link);
});

it('rejects a link to a path that does not exist', () => {
  expect(() => addressIn('docs/reference/verbs.md', 'README.md')).toThrow(
    'docs/reference/verbs.md: link to README.md: no such file',
  );
});

it('makes anchors as GitHub does', () => {
  // Expected values: headings of this repository's pages as github.com renders them, by the rules of its html-pipeline.
  expect(anchorOf('Segmentation and received checksums')).toBe('segmentation-and-received-checksums');
  expect(anchorOf("A stranger's end: `rxe`, 2.0")).toBe('a-strangers-end-rxe-20');
  expect(anchorOf('A & B – snake_case')).toBe('a--b--snake_case');
});
