/** Anchors of headings, as GitHub makes them: links to sections work in a checkout's viewer and on the site. */

/** Anchor of a heading's text: lower case, hyphens for spaces, other punctuation left out. */
export const anchorOf = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}\s_-]/gu, '')
    .replace(/\s/g, '-');
