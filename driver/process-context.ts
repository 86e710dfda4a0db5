/**
 * One open device file of one process: the system calls, and which objects they may use. Handles are checked here; each
 * resource's file does the work. Objects count their users: a PD with regions or a CQ with QPs is EBUSY to destroy.
 *
 * Every call is serialised with the others of the same context, as the kernel's object locks do; the two that block
 * (completion and asynchronous events) are not.
 */
import { ContextEvents } from './context-events.ts';
import { ContextMemory } from './context-memory.ts';
import * as cqs from './cq.ts';
import type { Device } from './device.ts';
import { deviceAttributes } from './device-attributes.ts';
import { ethernetPortOf } from './ethernet-port.ts';
import { isMulticastGid } from './gid.ts';
import { HandleTable } from './handle-table.ts';
import { KernelError, require, requireWithin } from './kernel-error.ts';
import {
  type ChannelObject,
  type Counted,
  type CqObject,
  contextInfo,
  type MulticastMember,
  type PdObject,
  type QpObject,
  type RegionObject,
  type SrqObject,
  unused,
  type WindowObject,
  type XrcdObject,
} from './kernel-objects.ts';
import type {
  ContextInfo,
  CreateCq,
  CreateQp,
  CreateSrq,
  KernelContext,
  RegionKeys,
  RegisterRegion,
  ReregisterRegion,
  ResizeCq,
  SrqAttr,
} from './kernel-verbs.ts';
import * as regions from './mr.ts';
import { Mutex } from './mutex.ts';
import * as windows from './mw.ts';
import type { Cpu, ProcessMemory, SystemCallPath } from './platform.ts';
import type { Port } from './port.ts';
import * as qps from './qp.ts';
import { SharedTarget } from './shared-target.ts';
import * as srqs from './srq.ts';
import {
  type AhAttr,
  type AsyncEventRecord,
  type DeviceAttr,
  type GidEntry,
  type Handle,
  type MwType,
  type PortAttr,
  type QpAttr,
  QpStateVerb,
  QpTypeVerb,
  SrqAttrMask,
} from './uapi.ts';
import { mapUar, type UserUar, unmapUar } from './uar.ts';

export class ProcessContext implements KernelContext {
  readonly info: ContextInfo;
  private readonly device: Device;
  private readonly process: ProcessMemory;
  private readonly memory: ContextMemory;
  private readonly uar: UserUar;
  private readonly lock: Mutex;
  private readonly pds = new HandleTable<PdObject>('PD');
  private readonly regions = new HandleTable<RegionObject>('memory region');
  private readonly windows = new HandleTable<WindowObject>('memory window');
  private readonly xrcds = new HandleTable<XrcdObject>('XRC domain');
  private readonly channels = new HandleTable<ChannelObject>('completion channel');
  private readonly cqs = new HandleTable<CqObject>('CQ');
  private readonly srqs = new HandleTable<SrqObject>('SRQ');
  private readonly qps = new HandleTable<QpObject>('QP');
  private readonly events: ContextEvents;
  private readonly onClose: (context: ProcessContext) => void;
  private isClosed = false;
  /** The device died, and its objects of this context were released. */
  private isCutOff = false;

  constructor(device: Device, process: ProcessMemory, onClose: (context: ProcessContext) => void) {
    this.device = device;
    this.process = process;
    this.memory = new ContextMemory(process);
    this.onClose = onClose;
    this.lock = new Mutex(() => device.platform.newSignal());
    this.uar = mapUar(device, process);
    this.events = new ContextEvents(device);
    this.info = contextInfo(device, this.uar);
  }

  get isUsable(): boolean {
    return !this.isClosed && !this.isCutOff;
  }

  /** Objects alive, for the driver's counts. */
  counts(): { pds: number; regions: number; channels: number; cqs: number; srqs: number; qps: number } {
    return {
      pds: this.pds.size,
      regions: this.regions.size,
      channels: this.channels.size,
      cqs: this.cqs.size,
      srqs: this.srqs.size,
      qps: this.qps.size,
    };
  }

  async queryDevice(cpu: Cpu): Promise<DeviceAttr> {
    return this.call(cpu, 'ibv_query_device', async () =>
      deviceAttributes(this.device, await this.node(cpu)),
    );
  }

  async queryPort(cpu: Cpu, port: number): Promise<PortAttr> {
    return this.call(cpu, 'ibv_query_port', () => this.port(port).query(cpu));
  }

  async queryGid(cpu: Cpu, port: number, index: number): Promise<Uint8Array> {
    return this.call(cpu, 'ibv_query_gid', () => this.port(port).gid(cpu, index));
  }

  async queryPkey(cpu: Cpu, port: number, index: number): Promise<number> {
    return this.call(cpu, 'ibv_query_pkey', () => this.port(port).pkey(cpu, index));
  }

  async setPkeys(cpu: Cpu, number: number, index: number, pkeys: readonly number[]): Promise<void> {
    return this.call(cpu, 'umad_send', async () => {
      const port = this.port(number);
      if (ethernetPortOf(port) !== undefined)
        throw new KernelError('EOPNOTSUPP', `port ${number} is of Ethernet: its one P_Key is fixed`);
      await port.setPkeys(cpu, index, pkeys);
    });
  }

  async queryGidTable(cpu: Cpu, port: number): Promise<GidEntry[]> {
    return this.call(cpu, 'ibv_query_gid_table', () => this.port(port).gidTable(cpu));
  }

  async createAh(cpu: Cpu, attr: AhAttr): Promise<Uint8Array | undefined> {
    return this.call(cpu, 'ibv_create_ah', async () => {
      this.requireIbta('address handles');
      const port = ethernetPortOf(this.port(attr.portNum));
      return port === undefined ? undefined : (await port.resolve(cpu, attr)).mac;
    });
  }

  async allocPd(cpu: Cpu): Promise<{ handle: Handle; pdn: number }> {
    return this.call(cpu, 'ibv_alloc_pd', async () => {
      const pdn = this.device.numbers.pds.allocate();
      if (pdn < 0) throw new KernelError('ENOMEM', 'no protection domain is left');
      const handle = this.pds.reserve();
      this.pds.set(handle, { pdn, users: 0 });
      return { handle, pdn };
    });
  }

  async deallocPd(cpu: Cpu, handle: Handle): Promise<void> {
    return this.call(cpu, 'ibv_dealloc_pd', async () => {
      const pd = unused(this.pds.get(handle), 'PD');
      this.device.numbers.pds.release(pd.pdn);
      this.pds.delete(handle);
    });
  }

  async regMr(cpu: Cpu, request: RegisterRegion): Promise<RegionKeys> {
    return this.call(cpu, 'ibv_reg_mr', async () => {
      const pd = this.pds.get(request.pd);
      const { address, lengthBytes, access } = request;
      const { device, process } = this;
      const region = await regions.registerRegion(cpu, device, process, pd.pdn, address, lengthBytes, access);
      const handle = this.regions.reserve();
      this.regions.set(handle, { region, pd });
      pd.users++;
      return { handle, lkey: region.key, rkey: region.key };
    });
  }

  async reregMr(cpu: Cpu, { region: handle, pd, access, translation }: ReregisterRegion): Promise<void> {
    return this.call(cpu, 'ibv_rereg_mr', async () => {
      const object = this.regions.get(handle);
      const newPd = pd < 0 ? undefined : this.pds.get(pd);
      const changes = { pdn: newPd?.pdn, access, translation };
      await regions.reregisterRegion(cpu, this.device, this.process, object.region, changes);
      if (newPd === undefined) return;
      object.pd.users--;
      newPd.users++;
      object.pd = newPd;
    });
  }

  async deregMr(cpu: Cpu, handle: Handle): Promise<void> {
    return this.call(cpu, 'ibv_dereg_mr', async () => {
      const { region, pd } = this.regions.get(handle);
      if (!this.isCutOff) await regions.deregisterRegion(cpu, this.device, this.process, region);
      pd.users--;
      this.regions.delete(handle);
    });
  }

  async allocMw(cpu: Cpu, pdHandle: Handle, type: MwType): Promise<{ handle: Handle; rkey: number }> {
    return this.call(cpu, 'ibv_alloc_mw', async () => {
      const pd = this.pds.get(pdHandle);
      const window = await windows.allocateWindow(cpu, this.device, pd.pdn, type);
      const handle = this.windows.reserve();
      this.windows.set(handle, { window, pd });
      pd.users++;
      return { handle, rkey: window.key };
    });
  }

  async deallocMw(cpu: Cpu, handle: Handle): Promise<void> {
    return this.call(cpu, 'ibv_dealloc_mw', async () => {
      const { window, pd } = this.windows.get(handle);
      if (!this.isCutOff) await windows.releaseWindow(cpu, this.device, window);
      pd.users--;
      this.windows.delete(handle);
    });
  }

  async openXrcd(cpu: Cpu, file: number, flags: number): Promise<Handle> {
    return this.call(cpu, 'ibv_open_xrcd', async () => {
      this.requireIbta('XRC domains');
      const { device, uar } = this;
      const domain = await device.xrcDomains.open(cpu, device, uar.page, file, flags);
      const handle = this.xrcds.reserve();
      this.xrcds.set(handle, { domain, users: 0 });
      return handle;
    });
  }

  async closeXrcd(cpu: Cpu, handle: Handle): Promise<void> {
    return this.call(cpu, 'ibv_close_xrcd', async () => {
      const { domain } = unused(this.xrcds.get(handle), 'XRC domain');
      if (!this.isCutOff) await this.device.xrcDomains.close(cpu, this.device, domain);
      this.xrcds.delete(handle);
    });
  }

  async createCompletionChannel(cpu: Cpu): Promise<Handle> {
    return this.call(cpu, 'ibv_create_comp_channel', async () => {
      const handle = this.channels.reserve();
      this.channels.set(handle, { events: this.events.newQueue(), users: 0 });
      return handle;
    });
  }

  async destroyCompletionChannel(cpu: Cpu, handle: Handle): Promise<void> {
    return this.call(cpu, 'ibv_destroy_comp_channel', async () => {
      unused(this.channels.get(handle), 'completion channel').events.close();
      this.channels.delete(handle);
    });
  }

  async getCqEvent(cpu: Cpu, handle: Handle, timeoutPs?: number): Promise<Handle> {
    this.enter(cpu, 'ibv_get_cq_event', 'dataPath');
    const cqHandle = await this.channels.get(handle).events.take(cpu, timeoutPs);
    if (cqHandle === undefined) return -1;
    this.cqs.get(cqHandle).reportedEvents++;
    return cqHandle;
  }

  async getAsyncEvent(cpu: Cpu, timeoutPs?: number): Promise<AsyncEventRecord | undefined> {
    this.enter(cpu, 'ibv_get_async_event', 'control');
    return this.events.take(cpu, timeoutPs);
  }

  async createCq(cpu: Cpu, request: CreateCq): Promise<{ handle: Handle; cqn: number }> {
    return this.call(cpu, 'ibv_create_cq', async () => {
      const channel = request.channel < 0 ? undefined : this.channels.get(request.channel);
      const handle = this.cqs.reserve();
      const sink = this.events.sinkOf('cq', handle, channel);
      const cq = await cqs.createCq(cpu, this.device, this.memory, this.uar.page, request, sink);
      this.cqs.set(handle, { cq, channel, reportedEvents: 0, users: 0 });
      if (channel !== undefined) channel.users++;
      return { handle, cqn: cq.cqn };
    });
  }

  async resizeCq(cpu: Cpu, request: ResizeCq): Promise<void> {
    const { cq, entries, bufferAddress } = request;
    return this.call(cpu, 'ibv_resize_cq', () =>
      cqs.resizeCq(cpu, this.device, this.memory, this.cqs.get(cq).cq, entries, bufferAddress),
    );
  }

  async modifyCq(cpu: Cpu, handle: Handle, count: number, periodUs: number): Promise<void> {
    return this.call(cpu, 'ibv_modify_cq', () =>
      cqs.moderateCq(cpu, this.device, this.cqs.get(handle).cq, count, periodUs),
    );
  }

  async destroyCq(cpu: Cpu, handle: Handle): Promise<number> {
    return this.call(cpu, 'ibv_destroy_cq', async () => {
      const object = unused(this.cqs.get(handle), 'CQ');
      if (!this.isCutOff) await cqs.destroyCq(cpu, this.device, this.memory, object.cq);
      object.channel?.events.drop((event) => event === handle);
      if (object.channel !== undefined) object.channel.users--;
      this.events.forget('cq', handle);
      this.cqs.delete(handle);
      return object.reportedEvents;
    });
  }

  async createSrq(cpu: Cpu, request: CreateSrq): Promise<{ handle: Handle; srqn: number }> {
    return this.call(cpu, 'ibv_create_srq', async () => {
      const pd = this.pds.get(request.pd);
      const xrcd = request.xrcd < 0 ? undefined : this.xrcds.get(request.xrcd);
      const cq = request.cq < 0 ? undefined : this.cqs.get(request.cq);
      require((xrcd === undefined) === (cq === undefined), 'an SRQ for XRC has a domain and a CQ');
      const { reservedXrcDomains } = this.device.limits;
      const xrcdn = xrcd?.domain.xrcdn ?? reservedXrcDomains;
      const objects = { pdn: pd.pdn, xrcdn, cqn: cq?.cq.cqn ?? 0 };
      const handle = this.srqs.reserve();
      const sink = this.events.sinkOf('srq', handle);
      const srq = await srqs.createSrq(cpu, this.device, this.memory, objects, request, sink);
      const parts: Counted[] = [pd, ...(xrcd === undefined ? [] : [xrcd]), ...(cq === undefined ? [] : [cq])];
      for (const part of parts) part.users++;
      this.srqs.set(handle, { srq, parts, limit: 0, users: 0 });
      return { handle, srqn: srq.srqn };
    });
  }

  async modifySrq(cpu: Cpu, handle: Handle, attr: Partial<SrqAttr>, mask: number): Promise<void> {
    return this.call(cpu, 'ibv_modify_srq', async () => {
      const { srq } = this.srqs.get(handle);
      require((mask & ~SrqAttrMask.IBV_SRQ_LIMIT) === 0, 'an SRQ cannot be resized');
      if (mask !== 0) await srqs.armSrq(cpu, this.device, srq, attr.srqLimit ?? 0);
    });
  }

  async querySrq(cpu: Cpu, handle: Handle): Promise<SrqAttr> {
    return this.call(cpu, 'ibv_query_srq', async () => {
      const { srq } = this.srqs.get(handle);
      const srqLimit = await srqs.querySrqLimit(cpu, this.device, srq);
      return { maxWr: srq.maxWr, maxSge: srq.maxSge, srqLimit };
    });
  }

  async destroySrq(cpu: Cpu, handle: Handle): Promise<void> {
    return this.call(cpu, 'ibv_destroy_srq', async () => {
      const object = unused(this.srqs.get(handle), 'SRQ');
      if (!this.isCutOff) await srqs.destroySrq(cpu, this.device, this.memory, object.srq);
      for (const part of object.parts) part.users--;
      this.events.forget('srq', handle);
      this.srqs.delete(handle);
    });
  }

  async createQp(cpu: Cpu, request: CreateQp): Promise<{ handle: Handle; qpn: number }> {
    return this.call(cpu, 'ibv_create_qp', async () => {
      const pd = this.pds.get(request.pd);
      const sendCq = this.cqs.get(request.sendCq);
      const receiveCq = this.cqs.get(request.receiveCq);
      const srq = request.srq < 0 ? undefined : this.srqs.get(request.srq);
      const objects = {
        pdn: pd.pdn,
        uarPage: this.uar.page,
        sendCqn: sendCq.cq.cqn,
        receiveCqn: receiveCq.cq.cqn,
        srqn: srq?.srq.srqn ?? -1,
        xrcdn: 0,
      };
      const handle = this.qps.reserve();
      const sink = this.events.sinkOf('qp', handle);
      const qp = await qps.createQp(cpu, this.device, this.memory, objects, request, sink);
      const parts: Counted[] = [pd, sendCq, receiveCq];
      if (srq !== undefined) parts.push(srq);
      for (const part of parts) part.users++;
      this.qps.set(handle, { qp, parts, groups: [], blocksLoopback: request.blocksLoopback === true });
      return { handle, qpn: qp.qpn };
    });
  }

  async createTargetQp(cpu: Cpu, xrcd: Handle): Promise<{ handle: Handle; qpn: number }> {
    return this.call(cpu, 'ibv_create_qp', async () => {
      const object = this.xrcds.get(xrcd);
      const handle = this.qps.reserve();
      const sink = this.events.sinkOf('qp', handle);
      const { device } = this;
      const { domain } = object;
      const shared = new SharedTarget(() => device.platform.newSignal());
      const qp = await qps.createTargetQp(cpu, device, domain, this.uar.page, shared.sink);
      shared.open(sink);
      domain.targets.set(qp.qpn, { qp, shared });
      object.users++;
      this.qps.set(handle, {
        qp,
        parts: [object],
        groups: [],
        blocksLoopback: false,
        target: { shared, sink, domain },
      });
      return { handle, qpn: qp.qpn };
    });
  }

  async openQp(cpu: Cpu, xrcd: Handle, type: number, qpn: number): Promise<Handle> {
    return this.call(cpu, 'ibv_open_qp', async () => {
      const object = this.xrcds.get(xrcd);
      const { domain } = object;
      require(type === QpTypeVerb.IBV_QPT_XRC_RECV, `type is ${type}, expected that of an XRC target`);
      const found = domain.targets.get(qpn);
      if (found === undefined)
        throw new KernelError('EINVAL', `QPN is ${qpn}, expected that of a target of the XRC domain`);
      const { qp, shared } = found;
      const handle = this.qps.reserve();
      const sink = this.events.sinkOf('qp', handle);
      shared.open(sink);
      object.users++;
      this.qps.set(handle, {
        qp,
        parts: [object],
        groups: [],
        blocksLoopback: false,
        target: { shared, sink, domain },
      });
      return handle;
    });
  }

  async modifyQp(cpu: Cpu, handle: Handle, attr: QpAttr, mask: number): Promise<void> {
    return this.call(cpu, 'ibv_modify_qp', () => {
      const { qp, target } = this.qps.get(handle);
      const modify = (): Promise<void> => qps.modifyQp(cpu, this.device, qp, attr, mask);
      return target === undefined ? modify() : target.shared.lock.run(cpu, modify);
    });
  }

  async queryQp(cpu: Cpu, handle: Handle): Promise<QpAttr> {
    return this.call(cpu, 'ibv_query_qp', () => qps.queryQp(cpu, this.device, this.qps.get(handle).qp));
  }

  async destroyQp(cpu: Cpu, handle: Handle): Promise<void> {
    return this.call(cpu, 'ibv_destroy_qp', async () => {
      const object = this.qps.get(handle);
      if (object.groups.length > 0)
        throw new KernelError('EBUSY', `the QP is in ${object.groups.length} multicast groups`);
      if (!this.isCutOff) await this.letGoOf(cpu, object);
      for (const part of object.parts) part.users--;
      this.events.forget('qp', handle);
      this.qps.delete(handle);
    });
  }

  async attachMcast(cpu: Cpu, handle: Handle, gid: Uint8Array, lid: number): Promise<void> {
    return this.call(cpu, 'ibv_attach_mcast', async () => {
      this.requireIbta('multicast groups');
      const object = this.qps.get(handle);
      const { qp, groups, blocksLoopback } = object;
      if (memberAt(groups, gid, lid) >= 0) return;
      require(isMulticastGid(gid), 'the GID is none of a multicast group');
      require(qp.geometry.type === QpTypeVerb.IBV_QPT_UD, 'the QP is none of unreliable datagrams');
      const lids = isEthernetQp(this.device, await qps.queryQp(cpu, this.device, qp))
        ? [0, 0xffff]
        : [0xc000, 0xfffe];
      requireWithin('lid', lid, lids[0]!, lids[1]!);
      await this.device.multicast.attach(cpu, gid, qp.qpn, blocksLoopback);
      groups.push({ gid: gid.slice(), lid });
    });
  }

  async detachMcast(cpu: Cpu, handle: Handle, gid: Uint8Array, lid: number): Promise<void> {
    return this.call(cpu, 'ibv_detach_mcast', async () => {
      const { qp, groups } = this.qps.get(handle);
      const at = memberAt(groups, gid, lid);
      require(at >= 0, 'the QP was not attached to this GID and LID');
      if (!this.isCutOff) await this.device.multicast.detach(cpu, gid, qp.qpn);
      groups.splice(at, 1);
    });
  }

  /** QPs of a program that ends leave their groups; a QP that already left, by another LID, has left (Linux: ib_uverbs_detach_umcast). */
  private async leaveGroups(cpu: Cpu, { qp, groups }: QpObject): Promise<void> {
    for (const { gid } of groups.splice(0)) {
      try {
        if (!this.isCutOff) await this.device.multicast.detach(cpu, gid, qp.qpn);
      } catch (error) {
        if (!(error instanceof KernelError)) throw error;
      }
    }
  }

  /** Ends a QP; a target that other contexts have open remains. */
  private async letGoOf(cpu: Cpu, { qp, target }: QpObject): Promise<void> {
    const { device, memory } = this;
    if (target === undefined) return qps.destroyQp(cpu, device, memory, qp);
    const { shared, sink, domain } = target;
    if (!shared.letGo(sink)) return;
    domain.targets.delete(qp.qpn);
    await shared.lock.run(cpu, () => qps.destroyQp(cpu, device, memory, qp));
  }

  /** @throws KernelError EOPNOTSUPP with iWARP, as Linux's RDMA core where a driver has no such function */
  private requireIbta(what: string): void {
    if (this.device.iwarpQps !== undefined) throw new KernelError('EOPNOTSUPP', `iWARP has no ${what}`);
  }

  /** QPs, SRQs, XRC domains, CQs, channels, windows, regions, PDs, then the doorbell page: users before what they use. */
  async close(cpu: Cpu): Promise<void> {
    if (this.isClosed) return;
    for (const handle of this.qps.handles()) {
      await this.leaveGroups(cpu, this.qps.get(handle));
      await this.destroyQp(cpu, handle);
    }
    for (const handle of this.srqs.handles()) await this.destroySrq(cpu, handle);
    for (const handle of this.xrcds.handles()) await this.closeXrcd(cpu, handle);
    for (const handle of this.cqs.handles()) await this.destroyCq(cpu, handle);
    for (const handle of this.channels.handles()) await this.destroyCompletionChannel(cpu, handle);
    for (const handle of this.windows.handles()) await this.deallocMw(cpu, handle);
    for (const handle of this.regions.handles()) await this.deregMr(cpu, handle);
    for (const handle of this.pds.handles()) await this.deallocPd(cpu, handle);
    this.isClosed = true;
    this.events.close();
    unmapUar(this.device, this.process, this.uar);
    this.onClose(this);
  }

  /** The device has died: the program gets its event, and threads that wait for a completion wake and poll. */
  deviceFatal(): void {
    this.events.deviceFatal();
    for (const handle of this.cqs.handles()) this.cqs.get(handle).channel?.events.push(handle);
  }

  /**
   * Releases all objects of this context on the dead device. The handles remain, so that the program can destroy and close as
   * usual; any other call gets EIO from now on.
   */
  async disassociate(cpu: Cpu): Promise<void> {
    await this.lock.run(cpu, async () => {
      if (this.isClosed) return;
      const { device, memory, process } = this;
      for (const handle of this.qps.handles()) await this.letGoOf(cpu, this.qps.get(handle));
      for (const handle of this.srqs.handles())
        await srqs.destroySrq(cpu, device, memory, this.srqs.get(handle).srq);
      for (const handle of this.xrcds.handles())
        await device.xrcDomains.close(cpu, device, this.xrcds.get(handle).domain);
      for (const handle of this.cqs.handles())
        await cqs.destroyCq(cpu, device, memory, this.cqs.get(handle).cq);
      for (const handle of this.windows.handles())
        await windows.releaseWindow(cpu, device, this.windows.get(handle).window);
      for (const handle of this.regions.handles())
        await regions.deregisterRegion(cpu, device, process, this.regions.get(handle).region);
      this.isCutOff = true;
    });
  }

  /** Makes a system call: enters and charges it, then runs it while no other call of this context runs. */
  private async call<T>(cpu: Cpu, name: string, body: () => Promise<T>): Promise<T> {
    this.enter(cpu, name, 'control');
    const { platform } = this.device;
    platform.kernelEntered?.(cpu);
    try {
      return await this.lock.run(cpu, async () => {
        cpu.charge('driver', platform.costs.createObject);
        if (this.isCutOff && !destroys(name)) throw new KernelError('EIO', `${name}: the device is gone`);
        const result = await body();
        await cpu.settle();
        return result;
      });
    } finally {
      platform.kernelLeft?.(cpu);
    }
  }

  private enter(cpu: Cpu, name: string, path: SystemCallPath): void {
    if (this.isClosed) throw new KernelError('EBADF', 'the device file is closed');
    this.device.platform.systemCallEntered?.(cpu, name, path);
  }

  private port(number: number): Port {
    const port = this.device.ports[number - 1];
    if (port === undefined)
      throw new KernelError('EINVAL', `port is ${number}, expected 1 to ${this.device.ports.length}`);
    return port;
  }

  private node(cpu: Cpu): ReturnType<Port['nodeInfo']> {
    return this.port(1).nodeInfo(cpu);
  }
}

/** Calls that a program may still make on a removed device. */
const destroys = (name: string): boolean => /^ibv_(destroy|dereg|dealloc|close|detach)_/.test(name);

const memberAt = (groups: readonly MulticastMember[], gid: Uint8Array, lid: number): number =>
  groups.findIndex((group) => group.lid === lid && group.gid.every((byte, at) => byte === gid[at]));

/** A QP with a port uses that port; a QP without one may use any port, and the LID is then ignored (Linux 6.1, is_valid_mcast_lid). */
const isEthernetQp = ({ ports }: Device, { qpState, portNum }: QpAttr): boolean =>
  (qpState === QpStateVerb.IBV_QPS_RESET ? ports : [ports[(portNum ?? 1) - 1]]).some(
    (port) => ethernetPortOf(port) !== undefined,
  );
