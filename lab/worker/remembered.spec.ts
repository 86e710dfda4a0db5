/** Each answer is computed once, as long as it is kept. */
import { expect, it } from 'vitest';
import { remembered } from './remembered.ts';

function counted() {
  const asked: number[] = [];
  const answer = async (number: number): Promise<number> => {
    asked.push(number);
    if (number < 0) throw new RangeError('below zero');
    return 2 * number;
  };
  return { asked, answer: remembered(answer, 2) };
}

it('computes the answer to a question once', async () => {
  const { asked, answer } = counted();
  expect(await answer(3)).toBe(6);
  expect(await answer(3)).toBe(6);
  expect(asked).toEqual([3]);
});

it('forgets the least recently used answer', async () => {
  const { asked, answer } = counted();
  for (const number of [1, 2, 1, 3, 1, 2]) await answer(number);
  expect(asked).toEqual([1, 2, 3, 2]);
});

it('asks again after a failure', async () => {
  const { asked, answer } = counted();
  await expect(answer(-1)).rejects.toThrow('below zero');
  await expect(answer(-1)).rejects.toThrow('below zero');
  expect(asked).toEqual([-1, -1]);
});
