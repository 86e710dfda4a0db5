/** Context of every linter check: the followed device, host memory, and a function to report errors. */
import type { DeviceView } from '../follow/device-view.ts';
import type { MemoryReader } from '../host-memory-reader.ts';
import type { Findings } from './findings.ts';
import type { RuleName } from './rules.ts';

export class LintContext {
  readonly view: DeviceView;
  readonly memory: MemoryReader;
  readonly findings: Findings;
  /** The checked access in words, and its time. */
  access = '';
  nowPs = 0;

  constructor(view: DeviceView, memory: MemoryReader, findings: Findings) {
    this.view = view;
    this.memory = memory;
    this.findings = findings;
  }

  /** Sets the access that the next reports refer to. */
  beginAccess(access: string, nowPs: number): void {
    this.access = access;
    this.nowPs = nowPs;
  }

  report(rule: RuleName, object: string, text: string): void {
    this.findings.report(rule, object, text, this.access, this.nowPs);
  }

  isMemory(address: number, lengthBytes: number): boolean {
    return this.memory.read(address, lengthBytes) !== undefined;
  }
}

export const hex = (value: number): string => `0x${value.toString(16)}`;
