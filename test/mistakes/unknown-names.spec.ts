import { describe, expect, it } from 'vitest';
import { unknownNames } from './unknown-names.ts';

const source = 'frame.readyPs = frame.tailPs + this.#parts.latencyPs;';

describe('names of a mistake', () => {
  it('are unknown if the file does not have them', () => {
    expect(unknownNames(source, { replace: 'frame.readyPs = NEVER;' })).toEqual(['NEVER']);
    expect(unknownNames(source, { replace: 'frame.readyPs = frame ? NEVER : OTHER;' })).toEqual([
      'NEVER',
      'OTHER',
    ]);
  });

  it.each([
    ['global', 'frame.readyPs = Number.POSITIVE_INFINITY;'],
    ['declared in its text', 'const laterPs = 3; frame.readyPs = laterPs;'],
    ['in strings', "if (frame === 'Sent') return false;"],
    ['those of members and keys', 'frame.sent({ isLate: true });'],
  ])('are known if they are %s', (_, replace) => {
    expect(unknownNames(source, { replace })).toEqual([]);
  });
});
