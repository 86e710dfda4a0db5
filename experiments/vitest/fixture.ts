/** A machine for a test: created on the test's request, closed at its end. */
import { test as base } from 'vitest';
import { ConfigurationError } from '../../base/index.ts';
import type { OperationCost, OtherCost } from '../../machine/costs/index.ts';
import {
  type JsonValue,
  Machine,
  type MachineOptions,
  type ProgramOptions,
  type Report,
} from '../../machine/index.ts';

/** Costs of the programs of a machine. */
export class Costs {
  readonly operations: readonly OperationCost[];
  /** Costs without a marked operation, by host. */
  readonly others: readonly OtherCost[];
  /** Results of the programs, in the order in which they were loaded. */
  readonly results: readonly (JsonValue | undefined)[];
  readonly report: Report;

  constructor(
    { operations, others }: { readonly operations: OperationCost[]; readonly others: OtherCost[] },
    results: readonly (JsonValue | undefined)[],
    report: Report,
  ) {
    this.operations = operations;
    this.others = others;
    this.results = results;
    this.report = report;
  }

  /** All operations of this name, in the order of their starts. */
  named(name: string): OperationCost[] {
    return this.operations.filter((cost) => cost.name === name);
  }

  /**
   * The only operation of this name.
   * @throws ConfigurationError if none exists, or more than one
   */
  the(name: string): OperationCost {
    const found = this.named(name);
    if (found.length === 1) return found[0]!;
    const names = [...new Set(this.operations.map((cost) => cost.name))].join(', ') || 'none';
    throw new ConfigurationError(`operations named ${name}`, found.length, `1 (there are: ${names})`);
  }
}

export interface HcaFixture {
  /**
   * The machine itself, for everything that {@link run} does not do.
   */
  readonly machine: Machine;
  /** Loads programs, runs them to their end, and returns all costs so far. */
  run(...programs: readonly ProgramOptions[]): Promise<Costs>;
}

interface Fixtures {
  /** Options of the machine; `test.extend({ machineOptions: … })` changes them. */
  machineOptions: MachineOptions;
  hca: HcaFixture;
}

export const test = base.extend<Fixtures>({
  machineOptions: {},
  hca: async ({ machineOptions }, use) => {
    await using machine = await Machine.create({ ...machineOptions, attributesCosts: true });
    await use({
      machine,
      run: async (...programs) => {
        for (const program of programs) await machine.load(program);
        await machine.run();
        return new Costs(await machine.operationCosts(), await machine.results(), await machine.report());
      },
    });
  },
});
