import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { budgetFaultsOf, budgetOf, budgetTable, figuresBetween, heldToBudget, readBudget } from './budget.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'guest-budget-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Reads a budget of this content for commands of the guest. */
function read(content: unknown, commands: readonly string[] = ['a']): ReturnType<typeof readBudget> {
  const file = join(folder, 'budget.json');
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return readBudget(file, commands, 2);
}

const schema = 'hca-guest-budget/1';
const costs = (...figures: Record<string, number>[]) => [{ run: 'a', hcas: figures }];

describe('a budget of a guest', () => {
  it('is read as it was written, and then holds', () => {
    const counted = costs({ mmioWrites: 7, 'toHost.cqe': 3 });
    const rows = heldToBudget(read(budgetOf(counted)), counted);
    expect(rows.filter(({ budget }) => budget > 0).map(({ figure, budget }) => [figure, budget])).toEqual([
      ['mmioWrites', 7],
      ['toHost.cqe', 3],
    ]);
    expect(budgetFaultsOf(rows)).toEqual([]);
    expect(budgetTable(rows).match(/\d+/g)).toEqual(['0', '7', '7', '0', '3', '3']);
  });

  it('limits uncounted figures to 0, except those that Linux produces by the clock', () => {
    const budget = read(budgetOf(costs({ mmioWrites: 7 })));
    const dearer = costs({ mmioWrites: 7, interrupts: 1, mmioReads: 1, 'toDevice.register': 1 });
    expect(budgetFaultsOf(heldToBudget(budget, dearer))).toEqual([
      'over budget: interrupts of HCA 0: 1, budget 0: a',
    ]);
  });

  it('fails with the figure that exceeds its budget and the tolerance, of the command and the HCA', () => {
    const budget = read({ schema, tolerance: 0.1, runs: costs({ interrupts: 1 }, { interrupts: 10 }) });
    expect(budgetFaultsOf(heldToBudget(budget, costs({ interrupts: 1 }, { interrupts: 11 })))).toEqual([]);
    expect(budgetFaultsOf(heldToBudget(budget, costs({ interrupts: 1 }, { interrupts: 12 })))).toEqual([
      'over budget: interrupts of HCA 1: 12, budget 10: a',
    ]);
  });

  it('is exact without a tolerance, and limits a figure that was never counted to 0', () => {
    const budget = read({ schema, runs: costs({ mmioReads: 0, mmioWrites: 4 }) });
    expect(heldToBudget(budget, costs({ mmioWrites: 5 })).map(({ holds }) => holds)).toEqual([true, false]);
    expect(heldToBudget(budget, costs({ mmioReads: 1 })).map(({ holds }) => holds)).toEqual([false, true]);
  });

  it('checks the commands that ran when a guest disconnects in the middle', () => {
    const budget = read({ schema, runs: [...costs({}), { run: 'b', hcas: [{ mmioWrites: 1 }] }] }, [
      'a',
      'b',
    ]);
    expect(heldToBudget(budget, costs({}))).toEqual([]);
  });

  it.each([
    ['no JSON', '{', 'a JSON file'],
    ['a list', [], 'an object'],
    ['another schema', { schema: 'hca-perf/2', runs: costs() }, 'schema'],
    ['a tolerance below 0', { schema, tolerance: -1, runs: costs() }, 'tolerance'],
    ['no runs', { schema, runs: [] }, 'runs'],
    ['a run without its command', { schema, runs: [{ hcas: [] }] }, 'runs[0]'],
    ['HCAs that are no list', { schema, runs: [{ run: 'a', hcas: {} }] }, 'runs[0].hcas'],
    ['figures that are none', { schema, runs: [{ run: 'a', hcas: [3] }] }, 'runs[0].hcas[0]'],
    ['a figure of text', { schema, runs: costs({ interrupts: '3' as never }) }, 'hcas[0].interrupts'],
    ['a figure that there is not', { schema, runs: costs({ doorbells: 3 }) }, 'doorbells'],
    ['an HCA that the guest does not have', { schema, runs: costs({}, {}, {}) }, 'runs[0].hcas'],
    ['other commands', { schema, runs: [{ run: 'b', hcas: [] }] }, '--run'],
  ])('is refused before a guest boots: %s', (_, content, place) => {
    expect(() => read(content)).toThrow(place);
  });

  it('counts between two readings, zeros left out', () => {
    expect(figuresBetween({ a: 1, b: 2 }, { a: 1, b: 5, c: 4 })).toEqual({ b: 3, c: 4 });
  });
});
