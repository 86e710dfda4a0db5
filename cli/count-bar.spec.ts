import { afterEach, describe, expect, it, vi } from 'vitest';
import { CountBar } from './count-bar.ts';

const { isTTY } = process.stderr;
afterEach(() => {
  process.stderr.isTTY = isTTY;
  vi.restoreAllMocks();
});

/** Everything that a bar writes on its way from zero to half of 200. */
function written(onTerminal: boolean, total = 200): string {
  process.stderr.isTTY = onTerminal;
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const bar = new CountBar(total);
  bar.update(100);
  const text = write.mock.calls.map(([chunk]) => String(chunk)).join('');
  bar.stop();
  return text;
}

describe('a progress bar', () => {
  it('shows on a terminal, and changes no terminal mode that would remain after Ctrl-C', () => {
    const text = written(true);
    expect(text).toContain('0 %');
    // Hides the cursor and switches wrapping off: ESC [ ? … l.
    expect(text.split('\u001b[?')).toHaveLength(1);
  });

  it('is silent elsewhere, and for an empty count', () => {
    expect(written(false)).toBe('');
    expect(written(true, 0)).toBe('');
  });
});
