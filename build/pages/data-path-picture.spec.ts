import { describe, expect, it } from 'vitest';
import { dataPathArrows, dataPathPlaces } from '../../explain/diagram/data-path.ts';
import { blockOrder } from '../../explain/diagram/index.ts';
import { blocksOfDevice, dataPathPicture, readPicture } from './data-path-picture.ts';

describe('docs/pictures/data-path.svg', () => {
  it('is the present machine (else: npm run docs)', async () => {
    expect(readPicture()).toBe(await dataPathPicture());
  });

  it('has a position only for blocks of the device, and a position and an order for all of them', async () => {
    const { blocks } = await blocksOfDevice();
    const placed = Object.keys(dataPathPlaces);
    expect(placed.filter((name) => !blocks.includes(name))).toEqual([]);
    expect(blockOrder.toSorted()).toEqual(placed.toSorted());
    // Two blocks at the same position would hide each other.
    expect(new Set(Object.values(dataPathPlaces).map(String)).size).toBe(placed.length);
    for (const { from, to } of dataPathArrows) expect(placed).toEqual(expect.arrayContaining([from, to]));
  });

  it('numbers the steps of a WRITE from its post to its completion, each once', () => {
    const steps = [...readPicture().matchAll(/<text class="step"[^>]*>(\d+)</g)].map(([, step]) =>
      Number(step),
    );
    expect(steps.toSorted((left, right) => left - right)).toEqual(
      Array.from({ length: 19 }, (_, at) => at + 1),
    );
  });
});
