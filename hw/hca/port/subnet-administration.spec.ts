/**
 * Queries as Linux sends them. Their offsets are written out here, from IBTA volume 1, 15.2, independent of the
 * layouts.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { broughtUp, must } from '../testing/bring-up.ts';

const [get, set, getTable, remove] = [0x01, 0x02, 0x12, 0x15];
const [classPortInfo, informInfo, nodeRecord, portInfoRecord, pathRecord, mcMember] = [
  0x01, 0x03, 0x11, 0x12, 0x35, 0x38,
];
const guids = ['0002c90300000001', '0002c90300000011'] as const;
const prefix = 'fe80000000000000';

interface Query {
  readonly method: number;
  readonly attribute: number;
  readonly mask?: bigint;
  /** Hexadecimal digits by their place in the record. */
  readonly fields?: Readonly<Record<number, string>>;
}

const bytesOf = (digits: string): Uint8Array =>
  Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
const digitsOf = (bytes: Uint8Array, at: number, length: number): string =>
  Array.from(bytes.subarray(at, at + length), (byte) => byte.toString(16).padStart(2, '0')).join('');

function queryOf({ method, attribute, mask = 0n, fields = {} }: Query): Uint8Array {
  const mad = new Uint8Array(256);
  const view = new DataView(mad.buffer);
  mad.set([1, 3, 2, method]);
  view.setBigUint64(8, 0x1234n);
  view.setUint16(0x10, attribute);
  view.setBigUint64(0x30, mask);
  for (const [place, digits] of Object.entries(fields)) mad.set(bytesOf(digits), 0x38 + Number(place));
  return mad;
}

/** A port of node 0 that the embedded manager has made active, and node 1 at the other end of the cable. */
function managed() {
  const bench = broughtUp();
  must(bench, 'INIT_PORT', { inputModifier: 1 });
  bench.cable.set(true);
  bench.run();
  const manager = bench.control.management.managers[0]!;
  const ask = (query: Query): Uint8Array | undefined => {
    const mad = queryOf(query);
    return manager.answer(mad) ? mad : undefined;
  };
  return { bench, manager, ask };
}

const methodAndStatus = (mad: Uint8Array | undefined): string | undefined =>
  mad && digitsOf(mad, 3, 3).replace(/^(..)/, '$1 ');

describe('the embedded subnet manager', () => {
  it('IBTA 15.2.5.16: gives the path between two ports by their GIDs, with LIDs, MTU and rate of the port', () => {
    const { ask } = managed();
    const mask = (1n << 2n) | (1n << 3n) | (1n << 12n) | (1n << 13n);
    const fields = { 8: prefix + guids[1], 24: prefix + guids[0], 49: '81', 50: 'ffff' };
    const answer = ask({ method: get, attribute: pathRecord, mask, fields })!;
    expect(methodAndStatus(answer)).toBe('81 0000');
    expect(digitsOf(answer, 8, 8)).toBe('0000000000001234');
    const at = 0x38;
    expect(digitsOf(answer, at + 8, 32)).toBe(prefix + guids[1] + prefix + guids[0]);
    expect(digitsOf(answer, at + 40, 4)).toBe('00020001');
    expect(digitsOf(answer, at + 49, 3)).toBe('80ffff');
    // Exactly MTU 4096, exactly 40 Gbit/s.
    expect(digitsOf(answer, at + 54, 2)).toBe('8587');
  });

  it('IBTA 15.2.3: says of ports and partitions that are not there that there are no records', () => {
    const { ask } = managed();
    const fields = { 8: `${prefix}0002c90300000099`, 24: prefix + guids[0], 50: '1234' };
    for (const bit of [2n, 13n])
      expect(methodAndStatus(ask({ method: get, attribute: pathRecord, mask: 1n << bit, fields }))).toBe(
        '81 0300',
      );
  });

  it('IBTA 15.2.3: says of a query for one record that fits several that these are too many', () => {
    const { ask } = managed();
    expect(methodAndStatus(ask({ method: get, attribute: pathRecord }))).toBe('81 0400');
  });

  it('IBTA 13.6.2: sends a table as one segment, which says how long it is', () => {
    const { ask } = managed();
    const mask = 1n << 3n;
    const fields = { 24: prefix + guids[0] };
    const answer = ask({ method: getTable, attribute: pathRecord, mask, fields })!;
    expect(methodAndStatus(answer)).toBe('92 0000');
    // Version 1, data, active, first and last, segment 1, 20 bytes of header and two records of 64.
    expect(digitsOf(answer, 0x18, 12)).toBe('010107000000000100000094');
    expect(digitsOf(answer, 0x2c, 2)).toBe('0008');
    expect([0, 1].map((index) => digitsOf(answer, 0x38 + 64 * index + 40, 2))).toEqual(['0001', '0002']);
  });

  it('IBTA 13.6.2: an empty table is a good answer', () => {
    const { ask } = managed();
    const none = ask({ method: getTable, attribute: nodeRecord, mask: 1n, fields: { 0: '0009' } })!;
    expect(methodAndStatus(none)).toBe('92 0000');
    expect(digitsOf(none, 0x20, 4)).toBe('00000014');
  });

  /** RMPP of a MAD: version, type, flags, status; segment; payload length or new window. */
  const rmppOf = (mad: Uint8Array): string[] =>
    [0x18, 0x1c, 0x20].map((at) => digitsOf(mad, at, 4).replace(/^0+/, ''));
  /** An acknowledgement of a segment as Linux' receiver builds it: nothing follows the RMPP header. */
  function acknowledgement(segment: number, newWindowLast: number, type = 2): Uint8Array {
    const mad = queryOf({ method: getTable, attribute: nodeRecord });
    const view = new DataView(mad.buffer);
    mad.set([1, type, 1], 0x18);
    view.setUint32(0x1c, segment);
    view.setUint32(0x20, newWindowLast);
    return mad;
  }
  /** All that follows from a MAD. */
  function answersTo(manager: ReturnType<typeof managed>['manager'], mad: Uint8Array): Uint8Array[] {
    const all: Uint8Array[] = [];
    if (!manager.answer(mad)) return all;
    all.push(mad.slice());
    while (manager.hasNext) {
      manager.next(mad);
      all.push(mad.slice());
    }
    return all;
  }

  it('IBTA 13.6.2: sends a table of both nodes in two segments, the second when the first is acknowledged', () => {
    const { manager } = managed();
    const [first, ...early] = answersTo(manager, queryOf({ method: getTable, attribute: nodeRecord }));
    expect(early).toEqual([]);
    // Two records of 112 bytes, and 20 bytes of header in each segment; the last gives its own length.
    expect(rmppOf(first!)).toEqual(['1010300', '1', (2 * 20 + 224).toString(16)]);
    const [second, ...more] = answersTo(manager, acknowledgement(1, 65));
    expect(more).toEqual([]);
    expect(rmppOf(second!)).toEqual(['1010500', '2', (20 + 24).toString(16)]);
    expect(methodAndStatus(second)).toBe('92 0000');
    for (const at of [0, 8, 0x10, 0x2c]) expect(digitsOf(second!, at, 8)).toBe(digitsOf(first!, at, 8));
    const table = new Uint8Array([...first!.subarray(0x38), ...second!.subarray(0x38)]);
    expect([0, 112].map((at) => digitsOf(table, at, 2))).toEqual(['0001', '0002']);
    expect([0, 112].map((at) => digitsOf(table, at + 4 + 20, 8))).toEqual(guids);
    expect(new TextDecoder().decode(table.subarray(112 + 44, 112 + 62))).toBe('hca-emulator node ');
    expect(table.subarray(224)).toEqual(new Uint8Array(176));
    expect(answersTo(manager, acknowledgement(2, 65))).toEqual([]);
    // The table no longer exists.
    expect(answersTo(manager, acknowledgement(1, 65))).toEqual([]);
  });

  it('IBTA 13.6.2: sends as many segments as the window has, again what is not acknowledged, and no more when it is stopped', () => {
    const { ask, manager } = managed();
    const mask = 0x1_0003n;
    for (let group = 1; group <= 30; group++) {
      const mgid = `ff12401bffff0000000000000000${group.toString(16).padStart(4, '0')}`;
      const fields = { 0: mgid, 16: prefix + guids[0], 48: '01' };
      expect(methodAndStatus(ask({ method: set, attribute: mcMember, mask, fields }))).toBe('81 0000');
    }
    // 30 records of 56 bytes: nine segments of 200.
    const query = queryOf({ method: getTable, attribute: mcMember });
    const segmentsOf = (mads: readonly Uint8Array[]) =>
      mads.map((mad) => new DataView(mad.buffer).getUint32(0x1c));
    expect(segmentsOf(answersTo(manager, query.slice()))).toEqual([1]);
    expect(segmentsOf(answersTo(manager, acknowledgement(1, 4)))).toEqual([2, 3, 4]);
    expect(segmentsOf(answersTo(manager, acknowledgement(2, 4)))).toEqual([3, 4]);
    const rest = answersTo(manager, acknowledgement(4, 64));
    expect(segmentsOf(rest)).toEqual([5, 6, 7, 8, 9]);
    expect(rest.map((mad) => mad[0x1a])).toEqual([1, 1, 1, 1, 5]);
    expect(rmppOf(rest.at(-1)!)[2]).toBe((20 + 30 * 56 - 8 * 200).toString(16));
    for (const type of [3, 4]) {
      answersTo(manager, query.slice());
      expect(answersTo(manager, acknowledgement(1, 0, type))).toEqual([]);
      expect(answersTo(manager, acknowledgement(1, 64))).toEqual([]);
    }
    // An acknowledgement beyond the end, and a window that closes: the sender can do nothing.
    answersTo(manager, query.slice());
    expect(answersTo(manager, acknowledgement(10, 64))).toEqual([]);
    answersTo(manager, query.slice());
    expect(answersTo(manager, acknowledgement(3, 2))).toEqual([]);
  });

  it('IBTA 13.6.2: takes the acknowledgement of a table that it does not know without an answer', () => {
    const { manager } = managed();
    expect(manager.answer(acknowledgement(1, 1))).toBe(false);
  });

  it('IBTA 15.2.5.2: knows both nodes by LID, node GUID and port GUID', () => {
    const { ask } = managed();
    for (const [mask, fields] of [
      [1n << 0n, { 0: '0002' }],
      [1n << 7n, { 16: '0002c90300000010' }],
      [1n << 8n, { 24: guids[1] }],
    ] as const) {
      const answer = ask({ method: get, attribute: nodeRecord, mask, fields })!;
      expect(methodAndStatus(answer)).toBe('81 0000');
      expect(digitsOf(answer, 0x38, 2)).toBe('0002');
      expect(digitsOf(answer, 0x38 + 0x18, 8)).toBe(guids[1]);
      expect(new TextDecoder().decode(answer.subarray(0x38 + 44, 0x38 + 62))).toBe('hca-emulator node ');
    }
  });

  it('IBTA 15.2.5.3: gives PortInfo of the own port, of no other', () => {
    const { bench, ask } = managed();
    const own = ask({ method: get, attribute: portInfoRecord, mask: 1n, fields: { 0: '0001' } })!;
    expect(own.subarray(0x38 + 4, 0x38 + 68)).toEqual(bench.control.ports[0]!.info);
    const other = ask({ method: get, attribute: portInfoRecord, mask: 1n, fields: { 0: '0002' } });
    expect(methodAndStatus(other)).toBe('81 0300');
  });

  it('IBTA 15.2.5.17: a port joins a group, is listed with it, and leaves it once', () => {
    const { ask } = managed();
    const mgid = 'ff12401bffff000000000000ffffffff';
    const mask = 0x1_0003n;
    const fields = { 0: mgid, 16: prefix + guids[0], 48: '01' };
    const joined = ask({ method: set, attribute: mcMember, mask, fields })!;
    expect(methodAndStatus(joined)).toBe('81 0000');
    // opensm creates the group of IP over InfiniBand with these values: Q_Key 0xb1b, MTU 2048, 10 Gbit/s.
    expect(digitsOf(joined, 0x38 + 32, 4)).toBe('00000b1b');
    const mlid = Number.parseInt(digitsOf(joined, 0x38 + 36, 2), 16);
    expect(mlid).toBeGreaterThanOrEqual(0xc000);
    expect(mlid).toBeLessThan(0xffff);
    expect(digitsOf(joined, 0x38 + 38, 6)).toBe('8400ffff8392');
    expect(digitsOf(joined, 0x38 + 48, 1)).toBe('21');
    const listed = ask({ method: getTable, attribute: mcMember })!;
    expect(digitsOf(listed, 0x38, 16)).toBe(mgid);
    expect(methodAndStatus(ask({ method: remove, attribute: mcMember, mask, fields }))).toBe('95 0000');
    expect(methodAndStatus(ask({ method: remove, attribute: mcMember, mask, fields }))).toBe('95 0200');
    expect(digitsOf(ask({ method: getTable, attribute: mcMember })!, 0x20, 4)).toBe('00000014');
  });

  it('IBTA 15.2.5.17: refuses to join without group, port or kind of membership, or what is no group', () => {
    const { ask } = managed();
    const fields = { 0: 'ff12401bffff000000000000ffffffff', 16: prefix + guids[0], 48: '01' };
    for (const mask of [0x1_0002n, 0x1_0001n, 0x3n])
      expect(methodAndStatus(ask({ method: set, attribute: mcMember, mask, fields }))).toBe('81 0600');
    const unicast = { ...fields, 0: prefix + guids[0] };
    expect(methodAndStatus(ask({ method: set, attribute: mcMember, mask: 0x1_0003n, fields: unicast }))).toBe(
      '81 0200',
    );
    const stranger = { ...fields, 16: `${prefix}0002c90300000099` };
    expect(
      methodAndStatus(ask({ method: set, attribute: mcMember, mask: 0x1_0003n, fields: stranger })),
    ).toBe('81 0500');
  });

  it('keeps so many groups and no more, and none behind a reset', () => {
    const { manager, ask } = managed();
    const join = (number: number): string | undefined => {
      const fields = { 0: `ff12${number.toString(16).padStart(28, '0')}`, 16: prefix + guids[0], 48: '01' };
      return methodAndStatus(ask({ method: set, attribute: mcMember, mask: 0x1_0003n, fields }));
    };
    for (let number = 0; number < 256; number++) expect(join(number)).toBe('81 0000');
    expect(join(256)).toBe('81 0100');
    expect(join(255)).toBe('81 0000');
    manager.reset();
    expect(join(256)).toBe('81 0000');
  });

  it('answers ClassPortInfo and InformInfo, and names what it has not', () => {
    const { ask } = managed();
    expect(digitsOf(ask({ method: get, attribute: classPortInfo })!, 0x38, 2)).toBe('0102');
    expect(methodAndStatus(ask({ method: set, attribute: informInfo }))).toBe('81 0000');
    expect(methodAndStatus(ask({ method: get, attribute: 0x31 }))).toBe('81 000c');
    expect(methodAndStatus(ask({ method: 0x06, attribute: 0x02 }))).toBe('86 0008');
  });

  it('IBTA 14.2.5.13: says that it is the master', () => {
    const { manager } = managed();
    const mad = new Uint8Array(256);
    mad.set([1, 1, 1, get]);
    mad[0x11] = 0x20;
    expect(manager.answer(mad)).toBe(true);
    expect(mad[3]).toBe(0x81);
    expect(digitsOf(mad, 0x40, 8)).toBe(guids[0]);
    expect(mad[0x40 + 20]).toBe(3);
  });

  it.each([
    // Control and the state of its sender: only another master hands over; OpenSM refuses the others with status 7,
    // too.
    ['HANDOVER', 1, 'a master', 3, '81 0000'],
    ['HANDOVER', 1, 'a standby', 2, '81 001c'],
    ['ACKNOWLEDGE', 2, 'a standby', 2, '81 001c'],
    ['DISABLE', 3, 'a master', 3, '81 001c'],
    ['STANDBY', 4, 'a master', 3, '81 001c'],
    ['DISCOVER', 5, 'a master', 3, '81 001c'],
    ['no known control', 6, 'a master', 3, '81 001c'],
  ])(
    'IBTA 14.4.1: answers %s (%i) from %s (%i) with %s, and stays the master',
    (_, control, __, state, said) => {
      const { manager } = managed();
      const mad = new Uint8Array(256);
      mad.set([1, 1, 1, set]);
      mad[0x11] = 0x20;
      mad[0x17] = control;
      mad[0x40 + 20] = 0xf0 | state;
      expect(manager.answer(mad)).toBe(true);
      expect(methodAndStatus(mad)).toBe(said);
      expect(digitsOf(mad, 0x40, 8)).toBe(guids[0]);
      // Priority 0, and no SM_Key for a manager that has not shown one.
      expect([mad[0x40 + 20], digitsOf(mad, 0x48, 8)]).toEqual([3, '0000000000000000']);
    },
  );

  it('IBTA 13.4, 15.2: any query has an answer of a MAD’s form, or none', () => {
    const { manager } = managed();
    const queries = fc.record({
      bytes: fc.uint8Array({ minLength: 256, maxLength: 256 }),
      method: fc.oneof(fc.constantFrom(get, set, getTable, remove), fc.nat(255)),
      attribute: fc.oneof(
        fc.constantFrom(classPortInfo, informInfo, nodeRecord, portInfoRecord, pathRecord, mcMember),
        fc.nat(0xffff),
      ),
      mask: fc.bigInt(0n, 0x3ff_ffffn),
    });
    fc.assert(
      fc.property(queries, ({ bytes, method, attribute, mask }) => {
        const query = queryOf({ method, attribute, mask });
        query.set(bytes.subarray(0x38), 0x38);
        if (bytes[0]! < 64) query.set(bytes.subarray(0x18, 0x38), 0x18);
        const before = query.slice();
        if (manager.answer(query)) {
          expect(query[3]! & 0x80).toBe(0x80);
          expect(query.subarray(6, 16)).toEqual(before.subarray(6, 16));
          expect(query.subarray(16, 0x18)).toEqual(before.subarray(16, 0x18));
        } else expect(query).toEqual(before);
      }),
      { numRuns: 3000, seed: 20 },
    );
  });

  it('has a LID that no port has', () => {
    for (const subnetManagerLid of [1, 2])
      expect(() => broughtUp({ subnetManagerLid })).toThrow(/hca.control.subnetManagerLid/);
    broughtUp({ subnetManagerLid: 2, embeddedSubnetManager: false });
  });

  it('leaves answers, other classes and what is no MAD alone', () => {
    const { manager } = managed();
    for (const head of [
      [1, 3, 2, 0x81],
      [1, 4, 1, get],
      [2, 3, 2, get],
    ]) {
      const mad = new Uint8Array(256);
      mad.set(head);
      const before = mad.slice();
      expect(manager.answer(mad)).toBe(false);
      expect(mad).toEqual(before);
    }
    expect(manager.answer(new Uint8Array(64))).toBe(false);
  });
});
