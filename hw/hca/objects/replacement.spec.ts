import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ReplacementPolicy, SetAssociativeDirectory } from './replacement.ts';

/** Looks a tag up as a cache does: a hit touches, a miss fills and then uses the line. Returns true for a hit. */
function use(directory: SetAssociativeDirectory, tag: number): boolean {
  const line = directory.find(tag);
  if (line !== -1) {
    directory.touch(line);
    return true;
  }
  const victim = directory.victimFor(tag);
  directory.place(victim, tag);
  directory.touch(victim);
  return false;
}

/** The textbook cache: per set a list of tags, the next victim first. */
class Model {
  readonly #sets: number[][];
  readonly #ways: number;
  readonly #isLru: boolean;

  constructor(setCount: number, ways: number, policy: ReplacementPolicy) {
    this.#sets = Array.from({ length: setCount }, () => []);
    this.#ways = ways;
    this.#isLru = policy === 'lru';
  }

  use(tag: number): boolean {
    const set = this.#sets[tag % this.#sets.length]!;
    const at = set.indexOf(tag);
    if (at !== -1) {
      if (this.#isLru) set.push(...set.splice(at, 1));
      return true;
    }
    if (set.length === this.#ways) set.shift();
    set.push(tag);
    return false;
  }

  clear(tag: number): void {
    const set = this.#sets[tag % this.#sets.length]!;
    const at = set.indexOf(tag);
    if (at !== -1) set.splice(at, 1);
  }

  get tags(): number[] {
    return this.#sets.flat().sort((left, right) => left - right);
  }
}

const shapes = fc.record({ logLines: fc.nat(5), logWays: fc.nat(5) });
const accesses = fc.array(fc.record({ tag: fc.nat(60) }), { maxLength: 200 });

describe('SetAssociativeDirectory', () => {
  for (const policy of ['lru', 'fifo'] as const)
    it(`holds what a textbook ${policy} cache holds`, () => {
      fc.assert(
        fc.property(
          shapes,
          fc.array(fc.tuple(fc.nat(60), fc.nat(9)), { maxLength: 200 }),
          ({ logLines, logWays }, steps) => {
            const ways = Math.min(2 ** logWays, 2 ** logLines);
            const directory = new SetAssociativeDirectory(2 ** logLines, 2 ** logWays, policy);
            const model = new Model(2 ** logLines / ways, ways, policy);
            for (const [tag, dice] of steps) {
              if (dice === 0) {
                const line = directory.find(tag);
                if (line !== -1) directory.clear(line);
                model.clear(tag);
                continue;
              }
              expect(use(directory, tag)).toBe(model.use(tag));
            }
            const held = [...directory.tags].filter((tag) => tag !== -1).sort((left, right) => left - right);
            expect(held).toEqual(model.tags);
          },
        ),
      );
    });

  it('holds every tag once, in its set, under random replacement, and gives every way up some time', () => {
    fc.assert(
      fc.property(shapes, accesses, ({ logLines, logWays }, steps) => {
        const directory = new SetAssociativeDirectory(2 ** logLines, 2 ** logWays, 'random');
        const sets = 2 ** logLines / directory.ways;
        for (const { tag } of steps) {
          use(directory, tag);
          expect(directory.find(tag)).not.toBe(-1);
        }
        const held = [...directory.tags].filter((tag) => tag !== -1);
        expect(new Set(held).size).toBe(held.length);
        directory.tags.forEach((tag, line) => {
          if (tag !== -1) expect(Math.floor(line / directory.ways)).toBe(tag % sets);
        });
      }),
    );
    const directory = new SetAssociativeDirectory(8, 8, 'random');
    const victims = new Set<number>();
    for (let tag = 0; tag < 500; tag++) {
      use(directory, tag);
      victims.add(directory.find(tag));
    }
    expect(victims.size).toBe(8);
  });

  it('gives up a line that was filled and not yet used only when all others are too', () => {
    for (const policy of ['lru', 'fifo', 'random'] as const) {
      const directory = new SetAssociativeDirectory(4, 4, policy);
      for (const tag of [1, 2, 3]) use(directory, tag);
      directory.place(directory.victimFor(4), 4);
      const locked = directory.find(4);
      for (let tag = 10; tag < 40; tag++) {
        expect(directory.victimFor(tag)).not.toBe(locked);
        use(directory, tag);
      }
      directory.clearAll();
      for (const tag of [1, 2, 3, 4]) directory.place(directory.victimFor(tag), tag);
      // All are locked: the line filled first is evicted.
      expect(directory.victimFor(5)).toBe(directory.find(1));
    }
  });

  it('counts an eviction for each tag that another one displaces', () => {
    const directory = new SetAssociativeDirectory(2, 1, 'lru');
    for (const tag of [0, 1, 2, 4, 2]) use(directory, tag);
    // 2 displaces 0, 4 displaces 2, 2 displaces 4; tag 1 stays in the other set.
    expect(directory.evictionCount).toBe(3);
    expect(directory.find(1)).toBe(1);
  });
});

describe('a hashed directory', () => {
  it('selects the set by the low bits of the 32-bit finalizer of MurmurHash3, whose value for 1 is 0x514e28b7', () => {
    const directory = new SetAssociativeDirectory(256, 1, 'lru', true);
    expect(directory.victimFor(0)).toBe(0);
    expect(directory.victimFor(1)).toBe(0xb7);
  });

  it('loses tags to full sets before its lines are all used, as Poisson’s distribution has it', () => {
    const [lines, ways, count] = [1024, 4, 768];
    const directory = new SetAssociativeDirectory(lines, ways, 'lru', true);
    for (let tag = 0; tag < count; tag++) use(directory, tag);
    const kept = Array.from({ length: count }, (_, tag) => directory.find(tag)).filter((line) => line !== -1);
    // A set has three tags on average; those above four are lost: sum over k > 4 of (k - 4) p(k), divided by three.
    let [share, chance] = [0, Math.exp(-3)];
    for (let k = 1; k < 30; k++) {
      chance *= 3 / k;
      if (k > ways) share += ((k - ways) * chance) / 3;
    }
    expect(share).toBeCloseTo(0.11, 2);
    expect(1 - kept.length / count).toBeGreaterThan(0.7 * share);
    expect(1 - kept.length / count).toBeLessThan(1.3 * share);
  });
});
