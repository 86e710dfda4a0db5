/** The text of a source, as imported by the lab's build and by Vite. */
declare module '*?raw' {
  const text: string;
  export default text;
}
