/** The table of IBTA volume 1, 14.2.2.2 for a switch of 8 ports; each row gives pointer and count, and names its clause. */
import { describe, expect, it } from 'vitest';
import { viewOf } from '../../../base/index.ts';
import { beginReturn, stepDirected } from './directed-route.ts';

const portCount = 8;
const permissive = 0xffff;
/** Offsets of the SMP's fields: table 121 of the volume. */
const at = {
  status: 4,
  pointer: 6,
  count: 7,
  sourceLid: 0x20,
  destinationLid: 0x22,
  initial: 0x80,
  back: 0xc0,
};

interface Given {
  readonly pointer: number;
  readonly count: number;
  readonly isBack?: boolean;
  readonly initial?: readonly number[];
  readonly back?: readonly number[];
  readonly sourceLid?: number;
  readonly destinationLid?: number;
}

function smpOf(given: Given): DataView {
  const bytes = new Uint8Array(256);
  const view = viewOf(bytes);
  view.setUint16(at.status, given.isBack === true ? 0x8000 : 0);
  view.setUint8(at.pointer, given.pointer);
  view.setUint8(at.count, given.count);
  view.setUint16(at.sourceLid, given.sourceLid ?? permissive);
  view.setUint16(at.destinationLid, given.destinationLid ?? permissive);
  bytes.set(given.initial ?? [], at.initial);
  bytes.set(given.back ?? [], at.back);
  return view;
}

/** Step of an SMP that came by port 5; and its pointer and return path afterwards. */
function stepOf(given: Given) {
  const view = smpOf(given);
  const step = stepDirected(view, 5, portCount);
  return {
    step,
    pointer: view.getUint8(at.pointer),
    back: [0, 1, 2].map((hop) => view.getUint8(at.back + hop)),
  };
}

describe('an outbound directed-route SMP', () => {
  it('IBTA C14-9 (1): begins here with pointer 0 after a part by LIDs', () => {
    const { step, pointer } = stepOf({ pointer: 0, count: 2, initial: [0, 3, 4], sourceLid: 7 });
    expect([step, pointer]).toEqual([{ to: 'port', port: 3 }, 1]);
  });

  it('IBTA C14-9 (1): is dropped with pointer 0 from a neighbour, which counts its own hop', () => {
    expect(stepOf({ pointer: 0, count: 2, initial: [0, 3, 4] }).step).toEqual({ to: 'nowhere' });
  });

  it('IBTA C14-9 (2): notes its input and leaves by the next port of the initial path', () => {
    const { step, pointer, back } = stepOf({ pointer: 1, count: 2, initial: [0, 1, 4] });
    expect([step, pointer, back]).toEqual([{ to: 'port', port: 4 }, 2, [0, 5, 0]]);
  });

  it.each([0, portCount + 1, 255])(
    'IBTA C14-9 (2): is dropped if that is port %i, which the switch does not have',
    (port) => {
      expect(stepOf({ pointer: 1, count: 2, initial: [0, 1, port] }).step).toEqual({ to: 'nowhere' });
    },
  );

  it('IBTA C14-9 (3): reaches the agent at the end of the path', () => {
    const { step, pointer, back } = stepOf({ pointer: 2, count: 2, initial: [0, 1, 4], back: [0, 6] });
    expect([step, pointer, back]).toEqual([{ to: 'agent' }, 3, [0, 6, 5]]);
  });

  it('IBTA C14-9 (3): is forwarded by LID if DrDLID is a LID', () => {
    const { step, pointer } = stepOf({ pointer: 1, count: 1, initial: [0, 1], destinationLid: 9 });
    expect([step, pointer]).toEqual([{ to: 'lid', lid: 9 }, 2]);
  });

  it('IBTA C14-9 (3): reaches the agent with no hops at all, and no return path is written', () => {
    const { step, pointer, back } = stepOf({ pointer: 0, count: 0 });
    expect([step, pointer, back]).toEqual([{ to: 'agent' }, 1, [0, 0, 0]]);
  });

  it('IBTA C14-9 (4): reaches the agent after a part by LIDs at its end', () => {
    expect(stepOf({ pointer: 3, count: 2 }).step).toEqual({ to: 'agent' });
  });

  it('IBTA C14-9 (5): is dropped with a pointer beyond that', () => {
    expect(stepOf({ pointer: 4, count: 2 }).step).toEqual({ to: 'nowhere' });
  });

  it('IBTA 14.2.2: is dropped with more than 63 hops', () => {
    expect(stepOf({ pointer: 64, count: 64 }).step).toEqual({ to: 'nowhere' });
    expect(stepOf({ pointer: 63, count: 63 }).step).toEqual({ to: 'agent' });
  });
});

describe('a returning directed-route SMP', () => {
  it('IBTA C14-13 (1): begins at the responder by the last port of the return path', () => {
    const view = smpOf({ pointer: 3, count: 2, isBack: true, back: [0, 6, 5] });
    expect([beginReturn(view, 5, portCount), view.getUint8(at.pointer)]).toEqual([
      { to: 'port', port: 5 },
      2,
    ]);
  });

  it('IBTA C14-13 (1): is dropped there if the return path names no port', () => {
    expect(beginReturn(smpOf({ pointer: 2, count: 1, isBack: true }), 5, portCount)).toEqual({
      to: 'nowhere',
    });
  });

  it('returns by its input, or by LIDs, if it has no hops', () => {
    const direct = smpOf({ pointer: 1, count: 0, isBack: true });
    expect(beginReturn(direct, 5, portCount)).toEqual({ to: 'port', port: 5 });
    const routed = smpOf({ pointer: 1, count: 0, isBack: true, sourceLid: 7 });
    expect(beginReturn(routed, 5, portCount)).toEqual({ to: 'lid', lid: 7 });
  });

  it('IBTA C14-13 (1): begins its directed part here with pointer count + 1 after a part by LIDs', () => {
    const { step, pointer } = stepOf({ pointer: 3, count: 2, isBack: true, back: [0, 6, 2] });
    expect([step, pointer]).toEqual([{ to: 'port', port: 2 }, 2]);
  });

  it('IBTA C14-13 (2): leaves by the port before in the return path', () => {
    const { step, pointer } = stepOf({ pointer: 2, count: 2, isBack: true, back: [0, 6, 2] });
    expect([step, pointer]).toEqual([{ to: 'port', port: 6 }, 1]);
  });

  it.each([0, portCount + 1])('IBTA C14-13 (2): is dropped if that is port %i', (port) => {
    const given = { pointer: 2, count: 2, isBack: true, back: [0, port, 2] };
    expect(stepOf(given).step).toEqual({ to: 'nowhere' });
  });

  it('IBTA C14-13 (3): is forwarded by LID if DrSLID is a LID', () => {
    const { step, pointer } = stepOf({ pointer: 1, count: 2, isBack: true, sourceLid: 7 });
    expect([step, pointer]).toEqual([{ to: 'lid', lid: 7 }, 0]);
  });

  it('IBTA C14-13 (3), (4): is dropped where it would reach a subnet manager, which a switch does not have', () => {
    expect(stepOf({ pointer: 1, count: 2, isBack: true }).step).toEqual({ to: 'nowhere' });
    expect(stepOf({ pointer: 0, count: 2, isBack: true }).step).toEqual({ to: 'nowhere' });
  });

  it('IBTA C14-13 (5): is dropped with a pointer beyond its count', () => {
    expect(stepOf({ pointer: 4, count: 2, isBack: true }).step).toEqual({ to: 'nowhere' });
  });
});
