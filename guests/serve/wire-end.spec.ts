import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../base/index.ts';
import { checkedFaults, type FaultPlan } from '../../machine/faults/index.ts';
import { channelKey, ethernetOf, hcaName } from '../../machine/index.ts';
import { configurationOf } from '../../machine/profile/index.ts';
import { ChannelReader, ChannelWriter, LogicalProcess, SteppedRunner } from '../../sim/index.ts';
import { EthernetPort, withTag } from '../../wire/index.ts';
import { servedProfile } from './serve-options.ts';
import { openEndName, planServed } from './served-plan.ts';
import { WireEnd } from './wire-end.ts';

const usPs = 1_000_000;

/** A port instead of the HCA's, and the end of its cable, both up. */
function cableTo(set: Record<string, number> = {}, faults: FaultPlan = [], controlMac?: number) {
  const values = { 'hca.capability.linkLayer': 'ethernet', ...set };
  const config = configurationOf({ profile: servedProfile, set: values });
  const plan = planServed({ config, hcaCount: 1, cabling: 'socket', faults: checkedFaults(faults, 2) });
  const frames: number[][] = [];
  const end = new WireEnd(plan, 0, (bytes, at, length) => frames.push([...bytes.subarray(at, at + length)]));
  const lp = new LogicalProcess(hcaName(0));
  const [near, far] = [hcaName(0), openEndName(0)];
  const port = new EthernetPort({
    lp,
    config: withTag(config.ethernet),
    writer: new ChannelWriter(plan.channels[channelKey(near, far)]!),
    reader: new ChannelReader(plan.channels[channelKey(far, near)]!),
    seed: 1,
    controlMac,
  });
  /** Slots that the port's client holds, if requested. */
  const kept = { slots: [] as number[], isOn: false };
  const arrived: { readonly bytes: number[]; readonly atPs: number }[] = [];
  port.connect({
    receiver: {
      frameArrived: (slot) => {
        const start = port.frameStart(slot);
        arrived.push({
          bytes: [...port.rxBytes.subarray(start, start + port.frameBytes(slot))],
          atPs: lp.nowPs,
        });
        if (kept.isOn) kept.slots.push(slot);
        else port.consume(slot);
      },
    },
    sender: { spaceFreed: () => {} },
    link: { linkChanged: () => {} },
  });
  const runner = new SteppedRunner([lp, end.lp]);
  const run = (durationPs: number): void => {
    runner.touched();
    runner.runTo(runner.nowPs + durationPs);
  };
  const plugIn = (): void => {
    port.setEnabled(true);
    end.setPlugged(true);
    run((20 + 2 * config.ethernet.trainingUs) * usPs);
  };
  return { config, end, port, frames, arrived, kept, run, runner, plugIn };
}

const frameOf = (length: number, first: number): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (first + index) & 0xff);

describe('the end of a cable for a third-party endpoint', () => {
  it('has its link down without an endpoint, and loses frames sent meanwhile', () => {
    const { end, port, run, plugIn, frames } = cableTo();
    port.setEnabled(true);
    run(10_000 * usPs);
    expect(port.isUp).toBe(false);
    end.take(frameOf(60, 1), 0, 60);
    port.send(frameOf(60, 1), 0, 60);
    plugIn();
    expect(port.isUp).toBe(true);
    expect(end.ledger.transmitted['discardedFrames']).toBe(1);
    end.setPlugged(false);
    run(10_000 * usPs);
    expect(port.isUp).toBe(false);
    expect(frames).toEqual([]);
  });

  it('passes out the frames of the HCA, and puts those of the endpoint on the cable at its rate', () => {
    const { end, port, run, runner, plugIn, frames, arrived, config } = cableTo();
    plugIn();
    port.send(frameOf(100, 3), 0, 100);
    const sent = frameOf(1514, 9);
    const startPs = runner.nowPs;
    for (let count = 0; count < 3; count++) end.take(sent, 0, sent.length);
    run(100 * usPs);
    expect(frames).toEqual([[...frameOf(100, 3)]]);
    expect(arrived.map(({ bytes }) => bytes)).toEqual([[...sent], [...sent], [...sent]]);
    // IEEE 802.3, 3.1.1 and 4.4.2: preamble 8, FCS 4, gap 12.
    const bytePs = 8000 / config.ethernet.gigabitsPerSecond;
    expect(arrived[1]!.atPs - arrived[0]!.atPs).toBe(Math.round((8 + 1514 + 4 + 12) * bytePs));
    expect(arrived[0]!.atPs).toBeGreaterThanOrEqual(startPs + (8 + 1514 + 4) * bytePs);
  });

  it('loses, duplicates and reorders the endpoint’s frames by the faults of node 1, and counts them', () => {
    const { end, port, run, plugIn, frames, arrived } = cableTo({}, [
      { packet: 'lost', nth: 2, node: 1 },
      { packet: 'duplicated', nth: 3, delay: '2us', node: 1 },
      { packet: 'reordered', nth: 5, by: 2, node: 1 },
      { packet: 'lost', nth: 1 },
      { packet: 'lost', only: 'requests', node: 1 },
    ]);
    plugIn();
    for (let first = 1; first <= 8; first++) end.take(frameOf(60, first), 0, 60);
    port.send(frameOf(60, 1), 0, 60);
    run(100 * usPs);
    expect(arrived.map(({ bytes }) => bytes[0])).toEqual([1, 3, 4, 6, 7, 5, 8, 3]);
    // Faults of node 0 are the HCA's.
    expect(frames).toHaveLength(1);
    expect(end.faultLog.counts()).toEqual([1, 1, 1, 0, 0]);
    const { transmitted } = end.ledger;
    expect(transmitted).toMatchObject({ frames: 8, lostFrames: 1, copiedFrames: 1, heldBackFrames: 1 });
    expect(
      ethernetOf(
        { node: 1, ...end.ledger },
        { node: 0, transmitted: {}, received: {}, busyPs: 0 },
        { preambleBytes: 8, interFrameGapBytes: 12 },
      ),
    ).toMatchObject({
      packets: 9,
      bytes: 9 * 64,
      linkBytes: 9 * (8 + 64 + 12),
      duplicated: 1,
      reordered: 1,
      dropped: 0,
      lost: 1,
    });
  });

  it('passes out PAUSE frames of the HCA, and carries those of the endpoint, which the HCA obeys', () => {
    const { end, port, run, runner, plugIn, frames, kept, config } = cableTo(
      { 'ethernet.receiveFifoFrames': 1 },
      [],
      0xb,
    );
    port.flowControl.set(true, true);
    plugIn();
    // 1000 quanta of 512 bit times; IEEE 802.3-2018, 31B.3.
    const pauseOf = (source: string, quanta: string) =>
      Buffer.from(`0180c2000001${source}88080001${quanta}${'00'.repeat(42)}`, 'hex');
    const pause = pauseOf('020000000001', '03e8');
    end.take(pause, 0, pause.length);
    const bitPs = 1000 / config.ethernet.gigabitsPerSecond;
    const latencyPs = 2 * config.ethernet.portLatencyNs * 1000 + config.ethernet.cableMetres * 4800;
    const untilPs = runner.nowPs + 72 * 8 * bitPs + latencyPs + 1000 * 512 * bitPs;
    run(usPs);
    expect([port.isPaused, port.canTransmit(), port.received.deliveredFrames]).toEqual([true, false, 0]);
    run(Math.floor(untilPs) - runner.nowPs);
    expect([port.isPaused, port.canTransmit()]).toEqual([false, true]);
    // One frame is as many as it holds.
    kept.isOn = true;
    end.take(frameOf(60, 1), 0, 60);
    run(10 * usPs);
    port.consume(kept.slots[0]!);
    run(10 * usPs);
    expect(frames).toEqual(['ffff', '0000'].map((quanta) => [...pauseOf('00000000000b', quanta)]));
    expect(end.ledger.received['deliveredFrames']).toBe(2);
  });

  it('has no PAUSE frames of its own for a fault', () => {
    expect(() => cableTo({}, [{ packet: 'lost', only: 'pauses', node: 1 }])).toThrow(
      /only is "pauses", expected other frames of an end of a cable without flow control/,
    );
  });

  it('has room for a number of frames, and loses none of those', () => {
    const { end, run, plugIn, arrived } = cableTo();
    plugIn();
    let taken = 0;
    for (; end.hasRoom; taken++) end.take(frameOf(1000, taken), 0, 1000);
    expect(taken).toBeGreaterThan(64);
    run(1000 * usPs);
    expect(arrived.map(({ bytes }) => bytes[0])).toEqual(
      Array.from({ length: taken }, (_, index) => index & 0xff),
    );
    expect(end.hasRoom).toBe(true);
  });

  it('accepts no frame without a header, nor one longer than the MTU allows', () => {
    const { end, run, plugIn, arrived, config } = cableTo({ 'ethernet.mtuBytes': 1500 });
    plugIn();
    for (const length of [0, 13, 14, config.ethernet.mtuBytes + 14 + 5])
      end.take(frameOf(length, 1), 0, length);
    run(100 * usPs);
    expect(end.unfitCount).toBe(3);
    expect(arrived.map(({ bytes }) => bytes.length)).toEqual([60]);
  });

  it.each([1500, 1498])(
    'IEEE 802.1Q 9.3: carries a tag in addition to %i bytes of payload, in both directions',
    (mtuBytes) => {
      const { end, port, run, plugIn, arrived, frames } = cableTo({
        'ethernet.mtuBytes': mtuBytes,
        'ethernet.receiveFifoFrames': 1,
      });
      plugIn();
      const tagged = frameOf(14 + 4 + mtuBytes, 1);
      tagged.set([0x81, 0x00, 0x00, 0x05], 12);
      end.take(tagged, 0, tagged.length);
      port.send(tagged, 0, tagged.length);
      run(100 * usPs);
      expect(end.unfitCount).toBe(0);
      expect(arrived.map(({ bytes }) => bytes)).toEqual([[...tagged]]);
      expect(frames).toEqual([[...tagged]]);
    },
  );

  it('is rejected for InfiniBand ports, and for two HCAs', () => {
    const infiniband = configurationOf({ profile: servedProfile });
    const plan =
      (hcaCount: number, config = infiniband) =>
      () =>
        planServed({ config, hcaCount, cabling: 'socket', faults: [] });
    expect(plan(1)).toThrow(/linkLayer is "infiniband", expected ethernet for a cable to a stranger/);
    const set = { 'hca.capability.linkLayer': 'ethernet' };
    expect(plan(2, configurationOf({ profile: servedProfile, set }))).toThrow(ConfigurationError);
  });
});
