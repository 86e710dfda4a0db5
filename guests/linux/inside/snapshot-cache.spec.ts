import { existsSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { BootedPc } from '../booted/index.ts';
import { makeTemporaryFolder } from '../temporary-folder.ts';
import { readSnapshot, snapshotPath, writeSnapshot } from './snapshot-cache.ts';

const folder = makeTemporaryFolder('hca-snapshots-');
afterAll(() => folder.remove());

const booted: BootedPc = {
  pc: {
    state: Uint8Array.from({ length: 5000 }, (_, at) => at % 251),
    instructionCount: 7,
    account: {
      executingPs: 1,
      loadsPs: 2,
      storesPs: 3,
      interruptsPs: 4,
      wakingPs: 5,
      chancePs: 0,
      idlePs: 6,
    },
    wakesAtPs: 8,
    random: 9,
    configWrites: [[4, 6, 2]],
  },
  consoleText: 'ready\n',
};

describe('a snapshot in the cache', () => {
  it('is read as it was written, and not at all if it was damaged', () => {
    const path = snapshotPath(folder.path, ['whole'], false);
    expect(readSnapshot(path)).toBeUndefined();
    writeSnapshot(path, booted);
    expect(readSnapshot(path)).toEqual(booted);
    writeFileSync(path, 'cut');
    expect(readSnapshot(path)).toBeUndefined();
  });

  it('has another name for other inputs, and a folder of its own with files of the user’s', () => {
    const paths = [
      snapshotPath(folder.path, ['a'], false),
      snapshotPath(folder.path, ['b'], false),
      snapshotPath(folder.path, ['a'], true),
    ];
    expect(new Set(paths).size).toBe(3);
    expect(dirname(paths[0]!)).not.toBe(dirname(paths[2]!));
  });

  it('with files of the user’s is kept while it is one of the latest six', () => {
    const paths = Array.from({ length: 8 }, (_, at) => snapshotPath(folder.path, [at], true));
    for (const [at, path] of paths.entries()) {
      writeSnapshot(path, booted);
      utimesSync(path, at, at);
    }
    writeSnapshot(paths[7]!, booted);
    expect(paths.map((path) => existsSync(path))).toEqual([false, false, ...new Array(6).fill(true)]);
    expect(readdirSync(dirname(paths[0]!))).toHaveLength(12);
  });
});
