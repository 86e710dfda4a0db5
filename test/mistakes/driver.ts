/** Mistakes in the driver and in its pins. */
import type { Mistake } from './mistake.ts';

export const driverMistakes: readonly Mistake[] = [
  {
    name: 'mtt-kept-at-dereg',
    what: 'Deregistration does not give the translation entries of a region back.',
    kind: 'resource not returned',
    file: 'driver/mr.ts',
    find: '  if (region.translation !== undefined) await device.mtts.release(cpu, region.translation);\n',
    replace: '',
  },
  {
    name: 'key-used-again-at-once',
    what: 'The key of a region that was deregistered is the key of the next one.',
    kind: 'generation not raised',
    file: 'driver/number-allocator.ts',
    find: '      this.next = Math.min(this.next, index);\n      this.bumpGeneration();\n',
    replace: '      this.next = Math.min(this.next, index);\n',
  },
  {
    name: 'unpin-counts-bytes',
    what: 'Unpinning takes the length of the range from the count of pinned bytes, not its pages.',
    kind: 'wrong length',
    scene: 'refused-registrations',
    file: 'host/mm/pins.ts',
    find: 'this.pinnedBytes -= pinned.pageCount * pageBytes;',
    replace: 'this.pinnedBytes -= pinned.lengthBytes;',
  },
  {
    name: 'unpin-before-the-device',
    what: 'The pages of a region are unpinned before the device has released them.',
    kind: 'wrong order',
    file: 'driver/mr.ts',
    find: `  if (region.isEnabled) await takeBack(cpu, device, slot);
  if (region.isOnDemand) await device.pager.remove(cpu, region.key);
  await device.icm.dmpt.release(cpu, slot);
  if (region.translation !== undefined) await device.mtts.release(cpu, region.translation);
  device.numbers.mpts.release(region.number);
  const { costs } = device.platform;
  if (region.pages === undefined) {
    cpu.charge('driver', costs.deregisterRegionFixed);
    return;
  }
  cpu.charge('pin', costs.deregisterRegionFixed + costs.deregisterRegionPerPage * region.pages.pageCount);
  process.unpin(cpu, region.pages);
`,
    replace: `  const { costs } = device.platform;
  const { pages } = region;
  if (pages !== undefined) {
    cpu.charge('pin', costs.deregisterRegionFixed + costs.deregisterRegionPerPage * pages.pageCount);
    process.unpin(cpu, pages);
  }
  if (region.isEnabled) await takeBack(cpu, device, slot);
  if (pages === undefined) {
    await device.pager.remove(cpu, region.key);
    cpu.charge('driver', costs.deregisterRegionFixed);
  }
  await device.icm.dmpt.release(cpu, slot);
  if (region.translation !== undefined) await device.mtts.release(cpu, region.translation);
  device.numbers.mpts.release(region.number);
`,
  },
  {
    name: 'cq-record-stays-pinned',
    what: 'The page of the doorbell record of a CQ stays pinned when the CQ is destroyed.',
    kind: 'resource not returned',
    file: 'driver/cq.ts',
    find: '  memory.unmapRecord(cpu, cq.record);\n',
    replace: '',
  },
  {
    name: 'resized-buffer-stays-pinned',
    what: 'The old buffer of a CQ stays pinned when the CQ is resized.',
    kind: 'resource not returned',
    file: 'driver/cq.ts',
    find: '  await unmapBuffer(cpu, device, memory.process, old);\n',
    replace: '  await device.mtts.release(cpu, old.translation);\n',
  },
  {
    name: 'pages-given-back-unfenced',
    what: 'Pages of an on-demand region are given back before the device has let go of them.',
    kind: 'fence left out',
    scene: 'pages-on-demand',
    file: 'driver/on-demand/pager.ts',
    find: "      await this.setup.commands.execute(cpu, 'INVALIDATE_PAGES');\n",
    replace: '      this.ringInvalidate(cpu);\n',
  },
  {
    name: 'large-page-over-a-gap',
    what: 'One translation entry covers pages that are not next to each other in memory.',
    kind: 'wrong address',
    scene: 'frames-out-of-order',
    file: 'driver/page-size.ts',
    find: 'if (at > 0 && delta !== previousDelta) limit = Math.min(limit, trailingZeros(page));',
    replace: 'if (at === 1 && delta !== previousDelta) limit = Math.min(limit, trailingZeros(page));',
  },
  {
    name: 'sqd-event-not-asked-for',
    what: 'The driver asks for no event when a send queue is to be drained.',
    kind: 'lost event',
    file: 'driver/qp.ts',
    find: "const wantsEvent = command === 'RTS2SQD_QP' && attr.enSqdAsyncNotify === 1;",
    replace: "const wantsEvent = command === 'SQD2SQD_QP' && attr.enSqdAsyncNotify === 1;",
  },
  {
    name: 'responder-resources-forgotten',
    what: 'Access rights of a QP that are changed after RTR leave out READ and atomic, as if it had no responder resources.',
    kind: 'check skipped',
    scene: 'attributes-changed',
    file: 'driver/qp.ts',
    find: `  if ((mask & QpAttrMask.IBV_QP_MAX_DEST_RD_ATOMIC) !== 0) {
    qp.memory.maxDestRdAtomic = attr.maxDestRdAtomic ?? 0;
  }
`,
    replace: '',
  },
  {
    name: 'eq-armed-only-behind-entries',
    what: 'An EQ is not armed again when the number of its entries was a multiple of the update interval.',
    kind: 'lost event',
    file: 'driver/event-queue.ts',
    find: '    this.ring(cpu, 1);\n',
    replace: '    if (sinceUpdate > 0) this.ring(cpu, 1);\n',
  },
  {
    name: 'refused-request-stays',
    what: 'A connection that the program refuses is not forgotten.',
    kind: 'resource not returned',
    scene: 'connections',
    file: 'driver/cm/connection.ts',
    find: '    this.#sendReject(cpu, RejectReason.CONSUMER_DEFINED, privateData);\n    this.#endAtOnce();\n',
    replace: '    this.#sendReject(cpu, RejectReason.CONSUMER_DEFINED, privateData);\n',
  },
  {
    name: 'connection-message-sent-once',
    what: 'REQ, REP and DREQ are not repeated while they are not answered.',
    kind: 'lost event',
    scene: 'connections',
    file: 'driver/cm/connection.ts',
    find: '    this.#core.send(cpu, bytes, this.#to);\n    this.#repeatAfter(timeoutPs);\n',
    replace: '    this.#core.send(cpu, bytes, this.#to);\n',
  },
];
