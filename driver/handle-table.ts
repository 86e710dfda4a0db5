/** Handles of one kind of object of one open device: numbers that a program holds, checked at every call. */
import { KernelError } from './kernel-error.ts';
import type { Handle } from './uapi.ts';

export class HandleTable<T> {
  private readonly kind: string;
  private readonly objects = new Map<Handle, T>();
  private next = 1;

  constructor(kind: string) {
    this.kind = kind;
  }

  get size(): number {
    return this.objects.size;
  }

  /** Reserves the handle of the next object, for callers that need it before the object exists. */
  reserve(): Handle {
    return this.next++;
  }

  set(handle: Handle, object: T): void {
    this.objects.set(handle, object);
  }

  /** The object; EINVAL if the handle is not one of this context's. */
  get(handle: Handle): T {
    const object = this.objects.get(handle);
    if (object === undefined)
      throw new KernelError('EINVAL', `handle ${handle} names no ${this.kind} of this context`);
    return object;
  }

  delete(handle: Handle): void {
    this.objects.delete(handle);
  }

  /** Returns the handles in order of creation. */
  handles(): Handle[] {
    return [...this.objects.keys()];
  }

  values(): T[] {
    return [...this.objects.values()];
  }
}
