import { describe, expect, it } from 'vitest';
import { LogicalProcess, SteppedRunner } from '../../sim/index.ts';
import { faultsOf } from './index.ts';
import { InterruptGate } from './interrupt-gate.ts';
import { checkedFaults, parsedFault } from './plan.ts';

const address = 0xfee0_0000;

/**
 * A gate with the faults of `texts`; the device sends the messages of `sent`, one per microsecond. Returns the
 * delivered messages, by time in ns.
 */
function through(texts: readonly string[], sent: readonly number[]) {
  const lp = new LogicalProcess('host');
  const came: [ns: number, vector: number][] = [];
  const gate = new InterruptGate(lp, {
    vectorOf: (_address, data) => data,
    messageFor: (vector) => ({ address, data: vector }),
    message: (_address, data, nowPs) => came.push([nowPs / 1000, data]),
    intx() {},
  });
  gate.inject(faultsOf(checkedFaults(texts.map(parsedFault), 2), 0, 'interrupt'));
  const send = lp.queue.addHandler((vector) => gate.message(address, vector, lp.nowPs));
  for (const [index, vector] of sent.entries()) lp.queue.schedule((index + 1) * 1e6, send, vector);
  new SteppedRunner([lp]).runTo(1e9);
  return { came, gate };
}

describe('a gate of interrupts', () => {
  it('passes messages that no fault selects', () => {
    expect(through([], [1, 2]).came).toEqual([
      [1000, 1],
      [2000, 2],
    ]);
  });

  it('drops and delays the n-th message of a vector', () => {
    const { came, gate } = through(
      ['interrupt=lost,vector=1,nth=2', 'interrupt=late,vector=2,delay=10us'],
      [1, 2, 1, 2],
    );
    expect(came).toEqual([
      [1000, 1],
      [4000, 2],
      [12_000, 2],
    ]);
    expect([gate.messageCount, gate.lostCount, gate.lateCount, gate.heldCount]).toEqual([4, 1, 1, 0]);
  });

  it('sends a spurious message at a time, or after the n-th message of the vector', () => {
    const { came, gate } = through(
      ['interrupt=spurious,vector=7,at=1500ns', 'interrupt=spurious,vector=2,nth=2-,delay=200ns'],
      [2, 1, 2, 2],
    );
    expect(came).toEqual([
      [1000, 2],
      [1500, 7],
      [2000, 1],
      [3000, 2],
      [3200, 2],
      [4000, 2],
      [4200, 2],
    ]);
    // Only the device's messages are counted: a spurious message never triggers another.
    expect([gate.messageCount, gate.spuriousCount]).toEqual([4, 3]);
  });

  it('sends a spurious message after a dropped one', () => {
    const { came } = through(['interrupt=lost,vector=3', 'interrupt=spurious,vector=3'], [3]);
    expect(came).toEqual([[1000, 3]]);
  });
});
