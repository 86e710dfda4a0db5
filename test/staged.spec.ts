/** Retries of failed steps in tests of guests, with stand-ins for guests. */
import { beforeEach, describe, expect, it } from 'vitest';
import { GuestError } from '../guests/linux/index.ts';
import { Staged } from './guest/staged.ts';

/** Boots so far, and the events in each. */
const happened: string[] = [];
let boots = 0;
class Guests {
  readonly boot = ++boots;
  readonly session: AsyncDisposable = {
    [Symbol.asyncDispose]: async () => void happened.push(`boot ${this.boot} ends`),
  };
}

const printed: string[] = [];
let staged: Staged<Guests>;
beforeEach(async () => {
  happened.length = 0;
  printed.length = 0;
  boots = 0;
  staged = new Staged(
    async (onNotice) => {
      const guests = new Guests();
      onNotice(`notice of boot ${guests.boot}`);
      return guests;
    },
    (text) => void printed.push(text),
  );
  await staged.boot();
});

/** A step that fails in these boots. */
const step = (
  title: string,
  failsIn: readonly number[] = [],
  error: (text: string) => Error = toGuestError,
) => ({
  title,
  run: async ({ boot }: Guests): Promise<string | undefined> => {
    happened.push(`${title} in boot ${boot}`);
    if (failsIn.includes(boot)) throw error(`${title} does not answer`);
    return `${title} seen`;
  },
});
const toGuestError = (text: string): Error => new GuestError(text);

describe('the steps of guests', () => {
  it('run in one boot, in order, as long as none fails', async () => {
    expect([await staged.take(step('first')), await staged.take(step('second'))]).toEqual([
      'first seen',
      'second seen',
    ]);
    expect(staged.finished().boot).toBe(1);
    await staged.end();
    expect(happened).toEqual(['first in boot 1', 'second in boot 1', 'boot 1 ends']);
    expect(printed).toEqual([]);
  });

  it('are tried once more in freshly booted guests, after all earlier steps, and both tries are printed', async () => {
    await staged.take(step('first'));
    await staged.take(step('second'));
    expect(await staged.take(step('third', [1]))).toBe('third seen');
    expect(await staged.take(step('fourth'))).toBe('fourth seen');
    expect(happened).toEqual([
      ...['first in boot 1', 'second in boot 1', 'third in boot 1', 'boot 1 ends'],
      ...['first in boot 2', 'second in boot 2', 'third in boot 2', 'fourth in boot 2'],
    ]);
    expect(printed).toEqual(['"third" failed:\nGuestError: third does not answer\nnotice of boot 1']);
    expect(staged.finished().boot).toBe(2);
  });

  it('that also fail in the second boot fail, and all later ones at once', async () => {
    await staged.take(step('first'));
    await expect(staged.take(step('second', [1, 2]))).rejects.toThrow('second does not answer');
    const happenedBefore = [...happened];
    await expect(staged.take(step('third'))).rejects.toThrow('not tried, since "second" failed');
    expect(() => staged.finished()).toThrow('not tried, since "second" failed');
    expect(happened).toEqual(happenedBefore);
    expect(boots).toBe(2);
  });

  it('have one additional boot in all: a step that fails after it is not tried again', async () => {
    await staged.take(step('first', [1]));
    await expect(staged.take(step('second', [2]))).rejects.toThrow('second does not answer');
    expect(boots).toBe(2);
    expect(printed).toHaveLength(2);
    expect(printed[1]).toBe(
      '"second" failed:\nGuestError: second does not answer\nnotice of boot 1\nnotice of boot 2',
    );
    await expect(staged.take(step('third'))).rejects.toThrow('not tried, since "second" failed');
  });

  it('after a step that fails earlier in the second boot fail with it', async () => {
    await staged.take(step('first', [2]));
    await expect(staged.take(step('second', [1]))).rejects.toThrow('first does not answer');
    await expect(staged.take(step('third'))).rejects.toThrow('not tried, since "second" failed');
  });

  it('that find an error, instead of a guest that does not answer, are not tried again', async () => {
    const wrong = (text: string): Error => new RangeError(text);
    await expect(staged.take(step('first', [1], wrong))).rejects.toThrow(RangeError);
    expect(boots).toBe(1);
    await expect(staged.take(step('second'))).rejects.toThrow('not tried, since "first" failed');
  });
});
