/**
 * Headers of every file of the lab. The first two allow a page shared memory; the policy keeps everything in the page, and
 * prevents a reader's programs from fetching.
 */
export const labHeaders = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self' 'unsafe-eval'; worker-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'",
  'X-Content-Type-Options': 'nosniff',
} as const;

/** The headers in the form that static hosts read from a file `_headers`: a path, then one line per header. */
export function headersFile(path: string): string {
  const lines = Object.entries(labHeaders).map(([name, value]) => `  ${name}: ${value}`);
  return `${path}\n${lines.join('\n')}\n`;
}
