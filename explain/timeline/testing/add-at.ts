/** Plants a mistake: adds to the number at a place of a report. */
export function addAt(part: object, [name, ...rest]: readonly string[], by: number): void {
  const member: unknown = Reflect.get(part, name!);
  if (rest.length > 0 && typeof member === 'object' && member !== null) addAt(member, rest, by);
  else if (typeof member === 'number') Reflect.set(part, name!, member + by);
  else throw new Error(`there is no number at ${name}`);
}
