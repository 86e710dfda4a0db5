import { closeSync, existsSync } from 'node:fs';
import { constants } from 'node:os';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../base/assert.ts';
import { createMemfd, qemuCapabilities, versionPayload } from '../client/client.ts';
import {
  INTERRUPT_ERROR,
  INTERRUPT_INTX,
  INTERRUPT_MSI,
  INTERRUPT_MSIX,
  REGION_BAR0,
  REGION_CONFIG,
  REGION_ROM,
} from '../device.ts';
import { nativeUnavailableReason } from '../native/library.ts';
import { createEventfd, drainEventfd, signalEventfd } from '../native/poll.ts';
import { openDescriptorCount, ServerBench } from '../testing/bench.ts';
import { BAR0_BYTES, CONFIG_BYTES, MSIX_VECTORS, TestDevice } from '../testing/device.ts';
import {
  ACTION_MASK,
  ACTION_TRIGGER,
  ACTION_UNMASK,
  Command,
  DATA_BOOL,
  DATA_EVENTFD,
  deviceInfo,
  interruptInfo,
  multiWrite,
  multiWriteEntry,
  regionInfo,
  regionIoDescriptors,
  setInterrupts,
  version,
} from './protocol.ts';
import { VfioUserServer } from './vfio-user-server.ts';

const { EEXIST, EINVAL, EIO, ENOENT, ENOTSUP, EPROTONOSUPPORT } = constants.errno;
const unavailable = nativeUnavailableReason();
if (unavailable !== undefined) console.warn(`skipped: ${unavailable}`);
const nothing = new Uint8Array(0);

describe.skipIf(unavailable !== undefined)('a vfio-user server', () => {
  let before = 0;
  let bench: ServerBench;
  const opened: number[] = [];

  beforeEach(() => {
    before = openDescriptorCount();
    bench = new ServerBench();
  });

  afterEach(() => {
    bench.close();
    for (const descriptor of opened.splice(0)) closeSync(descriptor);
    expect(openDescriptorCount()).toBe(before);
  });

  const kept = (descriptor: number): number => {
    opened.push(descriptor);
    return descriptor;
  };
  const eventfds = (count: number): number[] => Array.from({ length: count }, () => kept(createEventfd()));

  describe('agrees on a version', () => {
    const textOf = (payload: Uint8Array): string =>
      Buffer.from(payload.subarray(version.sizeBytes)).toString();

    it("with QEMU: version 0.0, our limits, no longer than QEMU's proposal", () => {
      const answer = bench.connect().handshake();
      expect(answer.errno).toBe(0);
      expect(version.decode(answer.payload)).toEqual({ major: 0, minor: 0 });
      const text = textOf(answer.payload);
      expect(text.length).toBeLessThanOrEqual(JSON.stringify(qemuCapabilities).length + 1);
      expect(text.endsWith('\0')).toBe(true);
      expect(JSON.parse(text.slice(0, -1))).toEqual({
        capabilities: {
          max_msg_fds: 16,
          max_data_xfer_size: 1_048_576,
          max_dma_maps: 65_535,
          write_multiple: true,
        },
      });
      expect(bench.device.notified).toEqual(['connected']);
    });

    it.each([
      [0, 0],
      [1, 1],
      [9, 1],
    ])('0.%i becomes 0.%i', (proposed, agreed) => {
      const payload = versionPayload(0, proposed, '{}\0');
      const answer = bench.connect().request(Command.VERSION, payload);
      expect(version.decode(answer.payload).minor).toBe(agreed);
      expect(textOf(answer.payload)).not.toContain('write_multiple');
    });

    it('without any version data', () => {
      expect(bench.connect().request(Command.VERSION, versionPayload(0, 1, '')).errno).toBe(0);
    });

    it.each([
      ['another major version', versionPayload(1, 0, '{}\0'), EPROTONOSUPPORT],
      ['no version', nothing, EINVAL],
      ['text without an end', versionPayload(0, 0, '{}'), EINVAL],
      ['text that is no JSON', versionPayload(0, 0, '{"capabilities":\0'), EINVAL],
      ['JSON that is no object', versionPayload(0, 0, '[]\0'), EINVAL],
      ['capabilities that are no object', versionPayload(0, 0, '{"capabilities":7}\0'), EINVAL],
      ['text that is not UTF-8', Buffer.concat([versionPayload(0, 0, ''), Buffer.from([0xff, 0])]), EINVAL],
      ['endless text', versionPayload(0, 0, `"${'x'.repeat(20_000)}"\0`), EINVAL],
      ['deep JSON', versionPayload(0, 0, `${'['.repeat(8000)}\0`), EINVAL],
    ])('not over %s: an error, then the end', (_, payload, errno) => {
      const client = bench.connect();
      expect(client.request(Command.VERSION, payload).errno).toBe(errno);
      expect(client.isDropped()).toBe(true);
      expect(bench.device.notified).toEqual([]);
    });

    it('first of all: any other first message disconnects the client', () => {
      const client = bench.connect();
      expect(client.request(Command.DEVICE_RESET, nothing).errno).toBe(EINVAL);
      expect(client.isDropped()).toBe(true);
      expect(bench.device.notified).toEqual([]);
    });

    it('once: a second proposal is an error and changes nothing', () => {
      const client = bench.connectAgreed();
      expect(client.handshake().errno).toBe(EINVAL);
      expect(client.read(REGION_BAR0, 0, 4)).toEqual(new Uint8Array(4));
    });

    it('with a silent client only for a limited time', () => {
      bench.close();
      bench = new ServerBench({ handshakeWaitMs: 20 });
      const client = bench.connect();
      bench.reactor.poll(0);
      expect(bench.server.hasClient).toBe(true);
      const endMs = performance.now() + 10_000;
      while (bench.server.hasClient && performance.now() < endMs) bench.reactor.poll(Infinity);
      expect(client.isDropped()).toBe(true);
    });
  });

  describe('describes the device', () => {
    it('as a PCI device that can be reset', () => {
      const payload = deviceInfo.encode({ argumentBytes: 16 });
      const answer = bench.connectAgreed().request(Command.DEVICE_GET_INFO, payload);
      // flags RESET 1 | PCI 2, nine regions, five kinds of interrupt
      expect([...new Uint32Array(answer.payload.buffer)]).toEqual([16, 3, 9, 5]);
    });

    it.each([
      [REGION_BAR0, BAR0_BYTES, 3],
      [1, 0, 0],
      [REGION_ROM, 8192, 1],
      [REGION_CONFIG, CONFIG_BYTES, 3],
      [8, 0, 0],
    ])('region %i has %i bytes and rights %i, and cannot be mapped', (index, sizeBytes, flags) => {
      const payload = regionInfo.encode({ argumentBytes: 32, index });
      const answer = bench.connectAgreed().request(Command.DEVICE_GET_REGION_INFO, payload);
      expect([...new Uint32Array(answer.payload.buffer)]).toEqual([32, flags, index, 0, sizeBytes, 0, 0, 0]);
    });

    it.each([
      [INTERRUPT_INTX, 1, 1 | 2 | 4],
      [INTERRUPT_MSI, 0, 1 | 8],
      [INTERRUPT_MSIX, MSIX_VECTORS, 1],
      [INTERRUPT_ERROR, 1, 1],
    ])('interrupt kind %i has %i vectors and flags %i', (index, count, flags) => {
      const payload = interruptInfo.encode({ argumentBytes: 16, index });
      const answer = bench.connectAgreed().request(Command.DEVICE_GET_IRQ_INFO, payload);
      expect([...new Uint32Array(answer.payload.buffer)]).toEqual([16, flags, index, count]);
    });

    it('with no descriptors for parts of regions', () => {
      const payload = regionIoDescriptors.encode({ argumentBytes: 4096, index: REGION_BAR0 });
      const answer = bench.connectAgreed().request(Command.DEVICE_GET_REGION_IO_FDS, payload);
      expect([...new Uint32Array(answer.payload.buffer)]).toEqual([16, 0, REGION_BAR0, 0]);
    });

    it.each([
      ['DEVICE_GET_INFO', 4, deviceInfo.encode({ argumentBytes: 15 })],
      ['DEVICE_GET_REGION_INFO', 5, regionInfo.encode({ argumentBytes: 31 })],
      ['DEVICE_GET_REGION_INFO of region 9', 5, regionInfo.encode({ argumentBytes: 32, index: 9 })],
      ['DEVICE_GET_REGION_IO_FDS', 6, regionIoDescriptors.encode({ argumentBytes: 16, flags: 1 })],
      ['DEVICE_GET_IRQ_INFO', 7, interruptInfo.encode({ argumentBytes: 8 })],
      ['DEVICE_GET_IRQ_INFO of kind 5', 7, interruptInfo.encode({ argumentBytes: 16, index: 5 })],
    ])('and refuses an impossible %s', (_, command, payload) => {
      const client = bench.connectAgreed();
      expect(client.request(command, payload)).toMatchObject({ errno: EINVAL, payload: nothing });
      expect(client.request(command, payload.subarray(0, payload.length - 1)).errno).toBe(EINVAL);
      expect(client.request(command, nothing).errno).toBe(EINVAL);
    });
  });

  describe('reads and writes regions', () => {
    it('of every length, and echoes the offset', () => {
      const client = bench.connectAgreed();
      for (const lengthBytes of [1, 2, 3, 4, 7, 8, 9, 64, 4096, BAR0_BYTES]) {
        const bytes = Uint8Array.from({ length: lengthBytes }, (_, at) => (at + lengthBytes) & 0xff);
        expect(client.write(REGION_BAR0, BAR0_BYTES - lengthBytes, bytes)).toBe(0);
        expect(client.read(REGION_BAR0, BAR0_BYTES - lengthBytes, lengthBytes)).toEqual(bytes);
      }
    });

    it('in the order sent, including posted ones, without a reply to those', () => {
      const client = bench.connectAgreed();
      for (let value = 0; value < 500; value++)
        client.post(REGION_BAR0, 8, Uint8Array.of(value & 0xff, value >> 8));
      expect(client.read(REGION_BAR0, 8, 2)).toEqual(Uint8Array.of(499 & 0xff, 499 >> 8));
      expect(client.isSilent()).toBe(true);
      expect(bench.device.writeCount).toBe(500);
    });

    it('many in one message', () => {
      const client = bench.connectAgreed();
      const entries = [1, 2, 4, 8].map((count, at) =>
        multiWriteEntry.encode({
          offset: BigInt(at * 8),
          region: REGION_BAR0,
          count,
          data: new Uint8Array(8).fill(at + 1),
        }),
      );
      const payload = Buffer.concat([multiWrite.encode({ count: 4n }), ...entries]);
      const answer = client.request(Command.REGION_WRITE_MULTI, payload);
      expect(answer).toMatchObject({ errno: 0, payload: multiWrite.encode({ count: 4n }) });
      const expected = new Uint8Array(32);
      [1, 2, 4, 8].forEach((count, at) => {
        expected.fill(at + 1, at * 8, at * 8 + count);
      });
      expect(client.read(REGION_BAR0, 0, 32)).toEqual(expected);
    });

    it('and nothing outside them, or without the right', () => {
      const client = bench.connectAgreed();
      expect(client.read(REGION_BAR0, BAR0_BYTES - 3, 4)).toBe(EINVAL);
      expect(client.read(REGION_BAR0, 2 ** 52, 4)).toBe(EINVAL);
      expect(client.read(1, 0, 4)).toBe(EINVAL);
      expect(client.read(9, 0, 4)).toBe(EINVAL);
      expect(client.read(0xffff_ffff, 0, 4)).toBe(EINVAL);
      expect(client.read(REGION_BAR0, 0, 0xffff_ffff)).toBe(EINVAL);
      expect(client.write(REGION_ROM, 0, new Uint8Array(4))).toBe(EINVAL);
      expect(client.write(REGION_CONFIG, CONFIG_BYTES, new Uint8Array(1))).toBe(EINVAL);
      expect(bench.device.readCount + bench.device.writeCount).toBe(0);
    });

    it('of no length without asking the device', () => {
      const client = bench.connectAgreed();
      expect(client.read(REGION_BAR0, 0, 0)).toEqual(nothing);
      expect(client.write(REGION_BAR0, 0, nothing)).toBe(0);
      expect(bench.device.readCount + bench.device.writeCount).toBe(0);
    });

    it('and passes on an error of the device', () => {
      const client = bench.connectAgreed();
      bench.device.isBroken = true;
      expect(client.read(REGION_BAR0, 0, 4)).toBe(EIO);
      expect(client.write(REGION_BAR0, 0, new Uint8Array(4))).toBe(EIO);
      bench.device.isBroken = false;
      expect(client.read(REGION_BAR0, 0, 4)).toEqual(new Uint8Array(4));
    });

    it.each([
      ['a write with less data than it says', Command.REGION_WRITE, 17, 8],
      ['a write with more data than it says', Command.REGION_WRITE, 25, 8],
      ['a cut read', Command.REGION_READ, 15, 8],
      ['a cut write', Command.REGION_WRITE, 12, 0],
      ['many writes that are fewer', Command.REGION_WRITE_MULTI, 8 + 23, 0],
      ['many writes without a number', Command.REGION_WRITE_MULTI, 7, 0],
    ])('but not %s', (_, command, payloadBytes, count) => {
      const payload = new Uint8Array(payloadBytes);
      if (command === Command.REGION_WRITE_MULTI) payload[0] = 1;
      else if (payloadBytes >= 16) payload[12] = count;
      expect(bench.connectAgreed().request(command, payload).errno).toBe(EINVAL);
      expect(bench.device.writeCount).toBe(0);
    });

    it('and stops many writes at the first failed one', () => {
      const entry = (count: number): Uint8Array => multiWriteEntry.encode({ region: REGION_BAR0, count });
      const payload = Buffer.concat([multiWrite.encode({ count: 3n }), entry(4), entry(9), entry(4)]);
      expect(bench.connectAgreed().request(Command.REGION_WRITE_MULTI, payload).errno).toBe(EINVAL);
      expect(bench.device.writeCount).toBe(1);
    });
  });

  describe('sets interrupts', () => {
    it('to eventfds that the device raises', () => {
      const client = bench.connectAgreed();
      const descriptors = eventfds(3);
      expect(client.setEventfds(INTERRUPT_MSIX, 5, 3, descriptors)).toBe(0);
      expect(signalEventfd(bench.device.eventfds.get('2:6')!)).toBe(true);
      expect(descriptors.map(drainEventfd)).toEqual([0, 1, 0]);
    });

    it('and closes replaced or removed ones', () => {
      const client = bench.connectAgreed();
      const descriptors = eventfds(16);
      const open = openDescriptorCount();
      for (let round = 0; round < 10; round++) {
        expect(client.setEventfds(INTERRUPT_MSIX, 0, 16, descriptors)).toBe(0);
        expect(openDescriptorCount()).toBe(open + 16);
      }
      expect(client.setEventfds(INTERRUPT_MSIX, 0, 4, [])).toBe(0);
      expect(openDescriptorCount()).toBe(open + 12);
      expect(client.actOnInterrupts(ACTION_TRIGGER, INTERRUPT_MSIX, 0, 0)).toBe(0);
      expect(openDescriptorCount()).toBe(open);
      expect(bench.device.eventfds.size).toBe(0);
    });

    it('and raises them itself on the client’s request', () => {
      const client = bench.connectAgreed();
      const descriptors = eventfds(3);
      client.setEventfds(INTERRUPT_MSIX, 0, 3, descriptors);
      expect(client.actOnInterrupts(ACTION_TRIGGER, INTERRUPT_MSIX, 1, 3)).toBe(0);
      expect(descriptors.map(drainEventfd)).toEqual([0, 1, 1]);
      const fields = { argumentBytes: 23, dataType: DATA_BOOL, action: ACTION_TRIGGER };
      const payload = setInterrupts.encode({ ...fields, index: INTERRUPT_MSIX, count: 3 });
      const answer = client.request(
        Command.DEVICE_SET_IRQS,
        Buffer.concat([payload, Uint8Array.of(1, 0, 1)]),
      );
      expect(answer.errno).toBe(0);
      expect(descriptors.map(drainEventfd)).toEqual([1, 0, 1]);
    });

    it('and notifies the device of masking and unmasking', () => {
      const client = bench.connectAgreed();
      expect(client.actOnInterrupts(ACTION_MASK, INTERRUPT_INTX, 0, 1)).toBe(0);
      expect(client.actOnInterrupts(ACTION_UNMASK, INTERRUPT_INTX, 0, 1)).toBe(0);
      expect(bench.device.notified.slice(1)).toEqual(['interrupt 0:0 masked', 'interrupt 0:0 unmasked']);
    });

    it('vfio-user DEVICE_SET_IRQS: and unmasks its pin each time that the eventfd for it is written', () => {
      const client = bench.connectAgreed();
      const [unmask] = eventfds(1);
      const open = openDescriptorCount();
      expect(client.setEventfds(INTERRUPT_INTX, 0, 1, [unmask!], ACTION_UNMASK)).toBe(0);
      expect(bench.device.notified.slice(1)).toEqual([]);
      expect(bench.reactor.poll(0)).toBe(false);
      for (let round = 1; round <= 2; round++) {
        signalEventfd(unmask!);
        expect(bench.reactor.poll(0)).toBe(true);
        expect(bench.device.notified.slice(1)).toEqual(Array(round).fill('interrupt 0:0 unmasked'));
      }
      // Without a descriptor the request removes it, and so does the removal of all of the pin's eventfds.
      expect(client.setEventfds(INTERRUPT_INTX, 0, 1, [], ACTION_UNMASK)).toBe(0);
      signalEventfd(unmask!);
      expect(bench.reactor.poll(0)).toBe(false);
      expect(client.setEventfds(INTERRUPT_INTX, 0, 1, [unmask!], ACTION_UNMASK)).toBe(0);
      expect(client.actOnInterrupts(ACTION_TRIGGER, INTERRUPT_INTX, 0, 0)).toBe(0);
      expect(bench.reactor.poll(0)).toBe(false);
      expect(openDescriptorCount()).toBe(open);
    });

    it.each([
      ['an unknown kind', { index: 5, count: 1 }, EINVAL],
      ['vectors it has not', { index: INTERRUPT_MSIX, start: 39, count: 2 }, EINVAL],
      ['vectors beyond 2^32', { index: INTERRUPT_MSIX, start: 0xffff_ffff, count: 2 }, EINVAL],
      ['no vector from the middle', { index: INTERRUPT_MSIX, start: 3 }, EINVAL],
      ['no action', { action: 0, index: INTERRUPT_MSIX, count: 1 }, EINVAL],
      ['two actions', { action: 3, index: INTERRUPT_MSIX, count: 1 }, EINVAL],
      ['no data type', { dataType: 0, index: INTERRUPT_MSIX, count: 1 }, EINVAL],
      ['two data types', { dataType: 3, index: INTERRUPT_MSIX, count: 1 }, EINVAL],
      ['booleans it did not send', { dataType: DATA_BOOL, index: INTERRUPT_MSIX, count: 1 }, EINVAL],
      ['an unknown flag', { otherFlags: 1, index: INTERRUPT_MSIX, count: 1 }, EINVAL],
      ['a mask of the error interrupt', { action: ACTION_MASK, index: INTERRUPT_ERROR, count: 1 }, EINVAL],
      [
        'an eventfd for masking',
        { action: ACTION_MASK, dataType: DATA_EVENTFD, index: INTERRUPT_INTX, count: 1 },
        ENOTSUP,
      ],
      [
        'an eventfd for unmasking a vector',
        { action: ACTION_UNMASK, dataType: DATA_EVENTFD, index: INTERRUPT_MSIX, count: 1 },
        ENOTSUP,
      ],
      ['too small an argument', { argumentBytes: 19, index: INTERRUPT_MSIX, count: 1 }, EINVAL],
    ])('but not %s', (_, values, errno) => {
      const payload = setInterrupts.encode({
        argumentBytes: 20,
        dataType: 1,
        action: ACTION_TRIGGER,
        ...values,
      });
      expect(bench.connectAgreed().request(Command.DEVICE_SET_IRQS, payload).errno).toBe(errno);
      expect(bench.device.notified).toEqual(['connected']);
    });

    it('but not to fewer or more eventfds than vectors, nor to other descriptors', () => {
      const client = bench.connectAgreed();
      const open = openDescriptorCount();
      const descriptors = eventfds(3);
      expect(client.setEventfds(INTERRUPT_MSIX, 0, 2, descriptors)).toBe(EINVAL);
      expect(client.setEventfds(INTERRUPT_MSIX, 0, 4, descriptors)).toBe(EINVAL);
      const ram = kept(createMemfd(4096));
      expect(client.setEventfds(INTERRUPT_MSIX, 0, 2, [descriptors[0]!, ram])).toBe(EINVAL);
      expect(bench.device.eventfds.size).toBe(0);
      expect(openDescriptorCount()).toBe(open + 4);
    });
  });

  describe('maps memory', () => {
    it('and unmaps it, as the guest does repeatedly', () => {
      const client = bench.connectAgreed();
      const ram = kept(createMemfd(2 ** 24));
      for (let round = 0; round < 20; round++) {
        const region = { address: 0x10_0000n, sizeBytes: 0x40_0000n };
        expect(client.map({ ...region, readable: 1, writable: 1 }, ram)).toBe(0);
        expect(bench.device.memory!.write(0x10_0000, 4, Uint8Array.of(1, 2, 3, round), 0)).toBe(true);
        expect(bench.device.memory!.read(0x10_0003, 1)).toEqual(Uint8Array.of(round));
        const answer = client.unmap(region);
        expect(answer.errno).toBe(0);
        expect([...new BigUint64Array(answer.payload.buffer).subarray(1)]).toEqual([0x10_0000n, 0x40_0000n]);
        expect(bench.device.memory!.read(0x10_0000, 1)).toBeUndefined();
      }
    });

    it('and unmaps all of it at once', () => {
      const client = bench.connectAgreed();
      const ram = kept(createMemfd(8192));
      client.map({ sizeBytes: 4096n, readable: 1 }, ram);
      client.map({ address: 8192n, sizeBytes: 4096n, readable: 1 });
      expect(client.unmap({ all: 1, sizeBytes: 4096n }).errno).toBe(EINVAL);
      expect(bench.device.memory!.regions).toHaveLength(2);
      expect(client.unmap({ all: 1 }).errno).toBe(0);
      expect(bench.device.memory!.regions).toHaveLength(0);
    });

    it('but not twice, nor unmaps anything unmapped', () => {
      const client = bench.connectAgreed();
      const region = { sizeBytes: 4096n, readable: 1 };
      expect(client.map(region)).toBe(0);
      expect(client.map(region)).toBe(EEXIST);
      expect(client.unmap({ sizeBytes: 8192n }).errno).toBe(ENOENT);
      expect(client.unmap({ sizeBytes: 4096n, getDirtyBitmap: 1 }).errno).toBe(ENOTSUP);
    });

    it.each([
      ['an unknown flag', { otherFlags: 1 }],
      ['too small an argument', { argumentBytes: 31 }],
      ['an address beyond 2^52', { address: 2n ** 63n }],
      ['an end beyond 2^64', { address: 4096n, sizeBytes: 2n ** 64n - 4096n }],
      ['nothing', { sizeBytes: 0n }],
    ])('but not %s', (_, values) => {
      const client = bench.connectAgreed();
      const ram = kept(createMemfd(8192));
      const open = openDescriptorCount();
      expect(client.map({ sizeBytes: 4096n, readable: 1, ...values }, ram)).toBe(EINVAL);
      expect(openDescriptorCount()).toBe(open);
    });

    it('but not with two descriptors, and closes both', () => {
      const client = bench.connectAgreed();
      const ram = kept(createMemfd(8192));
      const open = openDescriptorCount();
      const payload = new Uint8Array(32);
      expect(client.request(Command.DMA_MAP, payload, { descriptors: [ram, ram] }).errno).toBe(EINVAL);
      expect(client.request(Command.DMA_MAP, payload.subarray(1), { descriptors: [ram] }).errno).toBe(EINVAL);
      expect(openDescriptorCount()).toBe(open);
    });
  });

  it('resets the device', () => {
    expect(bench.connectAgreed().request(Command.DEVICE_RESET, nothing).errno).toBe(0);
    expect(bench.device.notified).toEqual(['connected', 'reset']);
  });

  it.each([
    ['DIRTY_PAGES', Command.DIRTY_PAGES, ENOTSUP],
    ['DEVICE_FEATURE', Command.DEVICE_FEATURE, ENOTSUP],
    ['MIG_DATA_READ', Command.MIG_DATA_READ, ENOTSUP],
    ['DMA_READ, which is ours to send', Command.DMA_READ, EINVAL],
    ['command 0', 0, EINVAL],
    ['command 65535', 0xffff, EINVAL],
  ])('answers %s with an error and continues', (_, command, errno) => {
    const client = bench.connectAgreed();
    expect(client.request(command, new Uint8Array(40)).errno).toBe(errno);
    expect(client.read(REGION_BAR0, 0, 4)).toEqual(new Uint8Array(4));
  });

  it('closes unused descriptors of a command', () => {
    const client = bench.connectAgreed();
    const descriptors = eventfds(5);
    const open = openDescriptorCount();
    expect(client.request(Command.DEVICE_RESET, nothing, { descriptors }).errno).toBe(EINVAL);
    expect(openDescriptorCount()).toBe(open);
    expect(bench.device.notified).toEqual(['connected']);
  });

  it('sends nothing if no reply is wanted, not even an error', () => {
    const client = bench.connectAgreed();
    client.command(Command.DEVICE_RESET, nothing, { noReply: true });
    client.command(Command.REGION_READ, nothing, { noReply: true });
    client.command(99, nothing, { noReply: true });
    expect(client.isSilent()).toBe(true);
    expect(bench.server.counters.errorReplyCount).toBe(2);
  });

  it('counts its work', () => {
    const client = bench.connectAgreed();
    client.read(REGION_BAR0, 0, 4);
    client.write(REGION_BAR0, 0, new Uint8Array(4));
    client.map({ sizeBytes: 4096n, readable: 1 });
    client.unmap({ sizeBytes: 4096n });
    client.request(77, nothing);
    client.close();
    bench.settle();
    expect(bench.server.counters).toEqual({
      clientCount: 1,
      droppedCount: 0,
      refusedCount: 0,
      lastEnd: 'it closed the connection',
      messageCount: 6,
      errorReplyCount: 1,
      regionReadCount: 1,
      regionWriteCount: 1,
      dmaMapCount: 1,
      dmaUnmapCount: 1,
    });
  });

  it('removes its socket file when it is closed', () => {
    expect(existsSync(bench.path)).toBe(true);
    bench.server.close();
    expect(existsSync(bench.path)).toBe(false);
  });

  it('rejects a device with impossible tables', () => {
    const device = new TestDevice();
    const path = `${bench.path}2`;
    const tables = {
      regions: [{ index: 9, sizeBytes: 1, isReadable: true, isWritable: true }],
      interrupts: [],
    };
    expect(() => new VfioUserServer({ path, device: Object.assign(device, tables) })).toThrow(
      ConfigurationError,
    );
  });
});
