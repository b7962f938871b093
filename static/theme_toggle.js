/* Switches between light and dark. Given: element, LABEL. */
const button = element.querySelector('#theme-toggle');
button.setAttribute('aria-label', LABEL);
button.title = LABEL;
button.addEventListener('click', () => document.body.classList.toggle('dark'));
