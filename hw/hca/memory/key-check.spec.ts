import { describe, expect, it } from 'vitest';
import { indexFormOfKey } from '../../../abi/keys.ts';
import { MptStatus, mpt } from '../../../abi/mpt.ts';
import type { Initial } from '../../../base/index.ts';
import { viewOf } from '../../../base/index.ts';
import { IcmMap, type IcmTablePlace, icmTableNames } from '../connectx3/icm-map.ts';
import { mptFormat } from '../connectx3/mpt-entry.ts';
import { checkReservedKey, KeyCheck } from './key-check.ts';
import { FILL_FAILED, FILL_PENDING, type FillAnswer, type FilledCache } from './line-fill.ts';
import { BAD_KEY, BAD_PD, MISSING_RIGHT, OUT_OF_BOUNDS, PENDING, TRANSLATED } from './translation.ts';
import { MptCache, RIGHT_LOCAL_READ, RIGHT_LOCAL_WRITE, RIGHT_REMOTE_READ } from './translation-cache.ts';

const KEY = 0x312;
const PD = 7;
const QPN = 0x48;
const LOG_ENTRIES = 8;
/** Host address of the page of ICM that holds the table. */
const TABLE = 0x100_0000;

const region: Initial<typeof mpt> = {
  status: MptStatus.VALID,
  keyIndexForm: indexFormOfKey(KEY),
  isRegion: 1,
  localReadEnabled: 1,
  remoteReadEnabled: 1,
  pd: PD,
  startAddress: 0x5000n,
  lengthBytes: 0x2000n,
};

/** A check with the entries in `entries` by tag, as though they had been read for port 0. */
function bench() {
  const icm = new IcmMap();
  const nowhere: IcmTablePlace = { base: 0, entryBytes: 64, logEntries: 1 };
  const places = Object.fromEntries(icmTableNames.map((name) => [name, nowhere]));
  icm.placeTables({
    ...(places as Record<(typeof icmTableNames)[number], IcmTablePlace>),
    dmpt: { base: 0, entryBytes: 64, logEntries: LOG_ENTRIES },
  });
  icm.map(0, TABLE, 4);
  const entries = new Map<number, Uint8Array>();
  const requests: number[] = [];
  const state = { answer: FILL_PENDING as FillAnswer, forgotten: 0 };
  const port = { mptMisses: 0, forget: () => void state.forgotten++ };
  const mptCache = new MptCache(4, 2, 'lru', mptFormat);
  const keys = new KeyCheck({
    mptCache,
    contextMemory: icm,
    ports: [port],
    fill: {
      holds: (_port, _kind, tag) => entries.has(tag),
      take: (_port, _kind, tag, { directory, load }: FilledCache) => {
        const line = directory.victimFor(tag);
        directory.place(line, tag);
        load.call(mptCache, line, viewOf(entries.get(tag)!), 0);
        entries.delete(tag);
        return line;
      },
      request: (_port, _kind, _tag, address) => {
        requests.push(address);
        return state.answer;
      },
      drop: (_kind, isDropped) => {
        for (const tag of entries.keys()) if (isDropped(tag)) entries.delete(tag);
      },
    },
  });
  /** Line of an entry that has just been read. */
  const lineOf = (fields: Initial<typeof mpt> = region, tag = KEY >>> 8): number => {
    entries.set(tag, mpt.encode(fields));
    return keys.find(0, tag);
  };
  return { keys, entries, requests, state, port, mptCache, lineOf };
}

describe('KeyCheck', () => {
  it('finds an entry that was read for the port, and forgets remembered translations', () => {
    const { keys, state, lineOf } = bench();
    const line = lineOf();
    expect([line >= 0, keys.find(0, KEY >>> 8), state.forgotten]).toEqual([true, line, 1]);
  });

  it('requests an entry that is not on chip from its place in ICM, and counts the miss once', () => {
    const { keys, requests, port, state } = bench();
    expect(keys.find(0, 3)).toBe(-1);
    expect([keys.miss(0, 3), keys.miss(0, 3)]).toEqual([PENDING, PENDING]);
    // 64 bytes for each entry (sheet 5.4).
    expect(requests).toEqual([TABLE + 3 * 64, TABLE + 3 * 64]);
    expect(port.mptMisses).toBe(1);
    keys.ended(0, 3);
    state.answer = FILL_FAILED;
    expect([keys.miss(0, 3), port.mptMisses]).toEqual([BAD_KEY, 2]);
  });

  it.each([
    ['in order', {}, {}, TRANSLATED],
    ['up to the last byte', {}, { address: 0x6fff, lengthBytes: 1 }, TRANSLATED],
    ['of a free entry', { status: MptStatus.FREE }, {}, BAD_KEY],
    ['of another key variant', {}, { key: KEY ^ 1 }, BAD_KEY],
    ['of this side by a window', { isRegion: 0 }, {}, BAD_KEY],
    ['of another protection domain', { pd: 8 }, { address: 0 }, BAD_PD],
    ['before the first byte', {}, { address: 0x4fff }, OUT_OF_BOUNDS],
    ['past the last byte', {}, { address: 0x6fff, lengthBytes: 2 }, OUT_OF_BOUNDS],
    ['below another top', {}, { addressTop: 1 }, OUT_OF_BOUNDS],
    ['without the right', {}, { rights: RIGHT_LOCAL_WRITE }, MISSING_RIGHT],
    ['out of bounds and without the right', {}, { address: 0, rights: RIGHT_LOCAL_WRITE }, OUT_OF_BOUNDS],
  ])('IBTA 10.6: answers an access %s', (_, fields, access, answer) => {
    const { keys, lineOf } = bench();
    const asked = {
      key: KEY,
      address: 0x5010,
      addressTop: 0,
      lengthBytes: 8,
      rights: RIGHT_LOCAL_READ,
      ...access,
    };
    const { key, address, addressTop, lengthBytes, rights } = asked;
    const line = lineOf({ ...region, ...fields });
    expect(keys.check(line, key, PD, address, addressTop, lengthBytes, rights, QPN)).toBe(answer);
    if (answer === TRANSLATED) expect(keys.offset).toBe(address - 0x5000);
  });

  it('IBTA 10.6.7.2.4: lets the QP alone use a window of type 2', () => {
    const { keys, lineOf } = bench();
    const line = lineOf({ ...region, isRegion: 0, isBoundToQp: 1, boundQpn: QPN });
    const answerTo = (qpn: number) => keys.check(line, KEY, PD, 0x5000, 0, 8, RIGHT_REMOTE_READ, qpn);
    expect([answerTo(QPN), answerTo(QPN + 1)]).toEqual([TRANSLATED, BAD_PD]);
  });

  it('forgets and replaces an entry under every key with its index', () => {
    const { keys, entries, mptCache, lineOf } = bench();
    const tag = KEY >>> 8;
    const alias = tag + 2 ** LOG_ENTRIES;
    lineOf(region, tag);
    lineOf(region, alias);
    entries.set(alias + 2 ** LOG_ENTRIES, mpt.encode(region));
    keys.replace(tag, viewOf(mpt.encode({ ...region, pd: 9 })));
    expect([tag, alias].map((each) => mptCache.pd[keys.find(0, each)])).toEqual([9, 9]);
    expect(entries.size).toBe(0);
    expect(keys.cached(tag)).toEqual(mpt.encode({ ...region, pd: 9 }));
    keys.forget(tag);
    expect([keys.find(0, tag), keys.find(0, alias), keys.cached(tag)]).toEqual([-1, -1, undefined]);
  });
});

describe('the reserved key', () => {
  it.each([
    [1, RIGHT_LOCAL_READ, TRANSLATED],
    [1, RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE, TRANSLATED],
    [1, RIGHT_REMOTE_READ, MISSING_RIGHT],
    [0, RIGHT_LOCAL_READ, BAD_KEY],
  ])('IBTA 10.6.3.3: of a QP with permission %i for rights %i answers %i', (isAllowed, rights, answer) => {
    expect(checkReservedKey(isAllowed, rights)).toBe(answer);
  });
});
