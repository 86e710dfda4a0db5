import { describe, expect, it } from 'vitest';
import { QpTable } from '../../objects/qp-table.ts';
import { infinibandQpContext } from '../../testing/contexts.ts';
import { IbtaStates } from '../state/ibta-states.ts';
import { KIND_ATOMIC, KIND_READ, ResponderResources } from './responder-resources.ts';

function resourcesOfFour(): ResponderResources {
  const qps = new QpTable(4, infinibandQpContext);
  for (let qpn = 0; qpn < 4; qpn++) qps.allocate(qpn);
  const resources = new ResponderResources(qps, new IbtaStates(1), { isOn: false });
  resources.slotsGrown(4);
  return resources;
}

describe('the ring of QPs with something to answer', () => {
  const resources = resourcesOfFour();
  const { rows } = resources;
  const enter = (...slots: number[]): void => {
    for (const slot of slots) resources.enter(resources.of(slot));
  };
  const takeAll = (): number[] => {
    const slots: number[] = [];
    while (resources.waitingCount > 0) slots.push(resources.leave().pair.slot);
    return slots;
  };

  it('gives them back in the order in which they came', () => {
    enter(2, 0, 3);
    expect(rows.map(({ isInRing }) => isInRing)).toEqual([1, 0, 1, 1]);
    const first = resources.leave();
    expect([first.pair.slot, first.isInRing]).toEqual([2, 0]);
    resources.enter(first);
    enter(1);
    expect(takeAll()).toEqual([0, 3, 2, 1]);
  });

  it('begins anew when it has been empty, and when all has been dropped', () => {
    enter(1);
    expect(takeAll()).toEqual([1]);
    enter(3, 2);
    resources.reset();
    expect([resources.waitingCount, rows[3]!.isInRing]).toEqual([0, 0]);
    enter(0, 3);
    expect(takeAll()).toEqual([0, 3]);
  });
});

describe('the entries of all QPs', () => {
  it('are handed out as they are needed, each to one request, and come back in any order of the QPs', () => {
    const resources = resourcesOfFour();
    // 4 QPs with 40 requests each: more than there is room for at first.
    const appended = Array.from({ length: 160 }, (_, turn) =>
      resources.append(turn % 4, KIND_READ, turn, (turn & 1) === 1, 0),
    );
    expect(new Set(appended).size).toBe(160);
    for (let turn = 2; turn < 160; turn += 4) {
      expect(resources.psn[resources.oldest(2)]).toBe(turn);
      resources.pop(2);
    }
    expect([resources.rows[2]!.count, resources.rows[2]!.newCount]).toEqual([0, 0]);
    resources.dropRequests(1);
    expect(resources.rows[1]!.count).toBe(0);
    expect([resources.rows[3]!.count, resources.rows[3]!.newCount]).toEqual([40, 40]);
    expect(resources.psn[resources.oldest(3)]).toBe(3);
    // The entries that QPs 1 and 2 returned are used before the pool grows again.
    const again = Array.from({ length: 80 }, (_, turn) => resources.append(0, KIND_READ, turn, true, 0));
    expect(Math.max(...again)).toBeLessThan(256);
  });
});

describe('a request that is asked for again', () => {
  it('IBTA 9.7.5.1.4: is answered before later ones, which are held for what may be asked for again between them', () => {
    const resources = resourcesOfFour();
    const entries = new Map([10, 20].map((psn) => [psn, resources.append(0, KIND_READ, psn, true, 0)]));
    for (const [psn, heldCycle] of [
      [5, 300],
      [15, 400],
      [30, 500],
    ] as const)
      entries.set(psn, resources.insert(0, KIND_READ, psn, false, 0, heldCycle));
    const order: number[] = [];
    const due = [5, 10, 15, 20, 30].map((psn) => [psn, resources.dueCycle[entries.get(psn)!]]);
    for (; resources.rows[0]!.count > 0; resources.pop(0)) order.push(resources.psn[resources.oldest(0)]!);
    expect(order).toEqual([5, 10, 15, 20, 30]);
    expect(due).toEqual([
      [5, 0],
      [10, 300],
      [15, 0],
      [20, 400],
      [30, 0],
    ]);
  });
});

describe('messages that an answer counts', () => {
  it('C9-148: are those up to it; of one that is repeated, as many as had counted before what stands behind it', () => {
    const resources = resourcesOfFour();
    const appended = (kind: number, psn: number, msn: number): number => {
      const entry = resources.append(0, kind, psn, true, 0);
      resources.countMessages(entry, msn, 2 * msn);
      return entry;
    };
    const inserted = (psn: number): number => {
      const entry = resources.insert(0, KIND_READ, psn, false, 0, 0);
      resources.countMessages(entry, 9, 18);
      return entry;
    };
    const said = (...entries: readonly number[]): number[][] =>
      entries.map((entry) => [resources.msn[entry]!, resources.takenCounter[entry]!]);
    const entries = [appended(KIND_READ, 10, 6), appended(KIND_ATOMIC, 20, 7), appended(KIND_READ, 30, 9)];
    expect(said(...entries)).toEqual([
      [6, 12],
      [7, 14],
      [9, 18],
    ]);
    // Before a READ, which is counted already; before an atomic, which is not; after all others.
    expect(said(inserted(5), inserted(15), inserted(40))).toEqual([
      [6, 12],
      [6, 14],
      [9, 18],
    ]);
    expect(resources.msnWithoutAtomics(0)).toBe(6);
  });
});

describe('what QPs owe', () => {
  it('takes room for those alone that ever owed an answer', () => {
    const resources = resourcesOfFour();
    resources.append(2, KIND_READ, 7, true, 0);
    expect(resources.find(1, 7)).toBe(-1);
    resources.dropRequests(0);
    resources.rebase(100);
    resources.reset();
    const [none, , owing] = resources.rows;
    expect(resources.rows.map((pending) => pending === none)).toEqual([true, true, false, true]);
    expect([owing!.pair.slot, owing!.count]).toEqual([2, 0]);
    expect([none!.count, none!.hasAck, none!.ackDueCycle]).toEqual([0, 0, 0]);
  });
});
