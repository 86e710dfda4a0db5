/** Doorbell records, as Linux 6.1 pins them: drivers/infiniband/hw/mlx4/doorbell.c, mlx4_ib_db_map_user and mlx4_ib_db_unmap_user. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { KernelContext } from './kernel-verbs.ts';
import { TestContext } from './testing-context.ts';

/** A ring of 64 CQEs is one page. */
const entries = 64;

describe('the page of doorbell records', () => {
  let opened: TestContext;
  let records: number;
  beforeEach(async () => {
    opened = await TestContext.open();
    records = opened.process.map(2 * 4096);
  });

  const createCq = (record: number, context: KernelContext = opened.context): Promise<{ handle: number }> =>
    context.createCq(opened.machine.cpu, {
      entries,
      bufferAddress: opened.process.map(4096),
      doorbellRecordAddress: record,
      channel: -1,
      completionVector: 0,
    });
  const pinnedPages = (): number => opened.process.pinnedPages;

  it('Linux mlx4_ib_db_map_user: is pinned once for all objects of a context, and unpinned with the last', async () => {
    const { context, machine, process } = opened;
    const first = await createCq(records);
    expect(pinnedPages()).toBe(2); // ring and record
    const second = await createCq(records + 8);
    expect(pinnedPages()).toBe(3); // one more ring
    // Three pages of queue; its record shares a page with those of the CQs, and its CQ is on the second page.
    const third = await createCq(records + 4096);
    const qp = await opened.createQp({ sendCq: third.handle, doorbellRecordAddress: records + 4092 });
    expect(pinnedPages()).toBe(3 + 2 + 3);
    await context.destroyQp(machine.cpu, qp.handle);
    await context.destroyCq(machine.cpu, first.handle);
    expect(pinnedPages()).toBe(4);
    await context.destroyCq(machine.cpu, second.handle);
    expect(pinnedPages()).toBe(2);
    await context.destroyCq(machine.cpu, third.handle);
    expect(process.pinnedPages).toBe(0);
  });

  it('Linux mlx4_ib_ucontext: is pinned separately by each context', async () => {
    const { driver, machine, process, context } = opened;
    const other = await driver.openDevice(machine.cpu, process);
    await createCq(records);
    await createCq(records + 8, other);
    expect(pinnedPages()).toBe(4);
    await context.close(machine.cpu);
    expect(pinnedPages()).toBe(2);
    await other.close(machine.cpu);
    expect(pinnedPages()).toBe(0);
  });

  it('Linux ib_umem_get: needs a page of RLIMIT_MEMLOCK only for its first record', async () => {
    const { driver, machine } = opened;
    const poor = machine.newProcess(3);
    const context = await driver.openDevice(machine.cpu, poor);
    const record = poor.map(4096);
    const request = (at: number) => ({
      entries,
      bufferAddress: poor.map(4096),
      doorbellRecordAddress: record + at,
      channel: -1,
      completionVector: 0,
    });
    await context.createCq(machine.cpu, request(0));
    await context.createCq(machine.cpu, request(8));
    await expect(context.createCq(machine.cpu, request(16))).rejects.toMatchObject({ code: 'ENOMEM' });
    expect(poor.pinnedPages).toBe(3);
  });

  it('Linux mlx4_ib_create_cq: keeps its pin when another object cannot be created', async () => {
    const { machine } = opened;
    await createCq(records);
    await expect(
      opened.createQp({ receiveWqes: 512, bufferAddress: 4096, doorbellRecordAddress: records + 8 }),
    ).rejects.toMatchObject({ code: 'EFAULT' });
    const pinned = pinnedPages();
    machine.script = () => ({ status: 0x0c });
    await expect(createCq(records + 16)).rejects.toMatchObject({ code: 'ENFILE' });
    expect(pinnedPages()).toBe(pinned);
  });
});
