import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../base/parameter.ts';
import { LogicalProcess } from '../sim/logical-process.ts';
import { SingleRunner } from '../sim/single-runner.ts';
import { PhysicalState } from './link-training.ts';
import { loopbackPlug } from './loopback-plug.ts';
import { Opcode } from './opcodes.ts';
import { WORD_PSN } from './packet.ts';
import { wireParameters } from './parameters.ts';
import { WirePort } from './wire-port.ts';

// Two passages of 40 ns through the port, and 2 m of 4.8 ns.
const LATENCY_PS = 2 * 40_000 + 2 * 4_800;

function pluggedPort() {
  const lp = new LogicalProcess('alone');
  const config = defaultsOf(wireParameters);
  const port = new WirePort({ lp, config, ...loopbackPlug(config) });
  const arrivals: { timePs: number; psn: number }[] = [];
  const states: boolean[] = [];
  const sender = { spaceFreed: (): void => {} };
  port.connect({
    receiver: {
      packetArrived: (offset) => {
        arrivals.push({ timePs: lp.nowPs, psn: port.rxWords[(offset >> 2) + WORD_PSN]! });
        port.consume(offset);
      },
    },
    sender,
    link: { linkChanged: (isUp) => void states.push(isUp) },
  });
  const actions: (() => void)[] = [];
  const handler = lp.queue.addHandler((index) => actions[index]!());
  const at = (timePs: number, action: () => void): void => {
    lp.queue.schedule(timePs, handler, actions.push(action) - 1);
  };
  return { lp, port, sender, arrivals, states, at, runner: new SingleRunner([lp]) };
}

describe('a port with a loopback plug', () => {
  it('comes up when it is enabled, without a peer, and goes down when it is disabled', async () => {
    const { port, states, at, runner } = pluggedPort();
    at(1000, () => port.setEnabled(true));
    await runner.runTo(20_000_000);
    expect([port.isLinkUp, port.physicalState]).toEqual([true, PhysicalState.LINK_UP]);
    at(20_000_001, () => port.setEnabled(false));
    await runner.runTo(21_000_000);
    expect([port.isLinkUp, port.physicalState]).toEqual([false, PhysicalState.DISABLED]);
    at(21_000_001, () => port.setEnabled(true));
    await runner.runTo(41_000_000);
    expect(states).toEqual([true, false, true]);
  });

  it('receives what it sends, after a serialisation and a latency, and never runs out of credits', async () => {
    const { lp, port, sender, arrivals, at, runner } = pluggedPort();
    at(0, () => port.setEnabled(true));
    await runner.runTo(20_000_000);
    let sent = 0;
    const send = (): void => {
      while (sent < 100 && port.canTransmit(Opcode.RC_RDMA_WRITE_ONLY, 64)) {
        const offset = port.beginPacket(Opcode.RC_RDMA_WRITE_ONLY, 64, 0, lp.nowPs);
        port.txWords[(offset >> 2) + WORD_PSN] = sent++;
      }
    };
    sender.spaceFreed = send;
    at(20_000_001, send);
    await runner.runTo(60_000_000);
    expect(arrivals.map(({ psn }) => psn)).toEqual(Array.from({ length: 100 }, (_, psn) => psn));
    // 106 bytes and 2 of framing at 4X QDR: 108 × 250 ps.
    expect(arrivals[0]!.timePs).toBe(20_000_001 + 27_000 + LATENCY_PS);
    expect(port.received.delivered.packetTotal).toBe(port.transmitted.packetCount);
    expect(port.receiveBufferedBytes).toBe(0);
  });
});
