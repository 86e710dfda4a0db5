/**
 * Removal: releases everything that probe acquired, in reverse order.
 *
 *   contexts' objects · CLOSE_PORT · CONF_SPECIAL_QP 0 · back to polling · MAP_EQ unmap · HW2SW_EQ · MSI-X off ·
 *   CLOSE_HCA · UNMAP_ICM by table · UNMAP_ICM_AUX · UNMAP_FA · owner register        (interface sheet 8.4)
 *
 * Each step of probe pushes its inverse, so the order cannot drift from probe's, and a probe that fails half-way leaks nothing.
 * After a failed step (the device may be dead) the others still run.
 */
import type { Cpu } from './platform.ts';

type Undo = (cpu: Cpu) => Promise<void> | void;

export class Teardown {
  private readonly steps: { readonly name: string; readonly undo: Undo }[] = [];

  /** Registers the inverse of the step just done. */
  push(name: string, undo: Undo): void {
    this.steps.push({ name, undo });
  }

  /** Takes over the steps of another teardown, done after its own. */
  adopt(later: Teardown): void {
    this.steps.push(...later.steps.splice(0));
  }

  /** Undoes everything, last first. @returns the steps that failed, with their errors */
  async run(cpu: Cpu): Promise<{ readonly name: string; readonly error: unknown }[]> {
    const failures: { name: string; error: unknown }[] = [];
    for (let step = this.steps.pop(); step !== undefined; step = this.steps.pop()) {
      try {
        await step.undo(cpu);
      } catch (error) {
        failures.push({ name: step.name, error });
      }
    }
    return failures;
  }
}
