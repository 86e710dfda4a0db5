import { expect, it } from 'vitest';
import { visible } from './visible.ts';

it('shows control characters that would move the cursor, set colours or turn the direction as text, and leaves the rest', () => {
  const codes = [0, 7, 10, 13, 27, 0x7f, 0x9b];
  expect(visible(String.fromCharCode(...codes))).toBe('\\x00\\x07\\x0a\\x0d\\x1b\\x7f\\x9b');
  expect(visible('\u202e\u2066')).toBe('\\u202e\\u2066');
  expect(visible('Größe µs 漢字 a b')).toBe('Größe µs 漢字 a b');
});
